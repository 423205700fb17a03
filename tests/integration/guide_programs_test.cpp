// What pages of the guide say of programs that are struck (docs/guide/failures.md).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/program.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// The programs write into the folder that they are run in.
class GuidePrograms : public testing::Test {
 protected:
  // Without the variables of the tests' environment that would change what programs do.
  ProgramResult run(const std::string& program, const std::string& arguments) const {
    return run_program("/usr/bin/env",
                       {"HOLDFAST_START=", "HOLDFAST_ALONE=", "HOLDFAST_FAULTS=", "/bin/sh", "-c",
                        "cd '" + folder_.path() + "' && '" + built_program(program) + "' " + arguments});
  }
  std::string refusal_of(const std::string& program, const std::string& arguments) const {
    const ProgramResult result = run(program, arguments);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    return result.output;
  }

  const TemporaryFolder folder_;
};

// In failures.md.
TEST_F(GuidePrograms, HasTheSameWeightsAfterTheDeathOfAReplica) {
  const ProgramResult result = run("injected_fault", "");

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(run("holdfast", "report runs/undisturbed").output, HasSubstr("0 incidents"));
  EXPECT_THAT(run("holdfast", "report runs/disturbed").output, HasSubstr("1 incident\n"));
}

TEST_F(GuidePrograms, HasTheSameWeightsAfterANumberThatIsNotFinite) {
  const ProgramResult result = run("injected_fault", "runs rank=0,step=100,fault=nan,phase=backward");

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("in step 100 (epoch 3, batch 4) loss is nan; all go back"));
}

TEST_F(GuidePrograms, HasOtherWeightsAfterAFlippedBitThatNoCheckMeets) {
  const ProgramResult result = run("injected_fault", "runs rank=0,step=30,fault=flip,target=gradient,phase=backward");

  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("\ndisturbed   "));
}

TEST_F(GuidePrograms, EndsWhereTheLastSavepointFindsNoSpace) {
  EXPECT_THAT(refusal_of("injected_fault", "runs rank=0,step=64,fault=full-disk,phase=writing"),
              HasSubstr("No space left on device"));
}

}  // namespace
}  // namespace holdfast
