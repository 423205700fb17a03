// What pages of the guide say of programs that are struck, edited and debugged (docs/guide/failures.md, editing.md and
// debugging.md).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/folders.h"
#include "support/program.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using testing::Not;

// The programs write into the folder that they are run in.
class GuidePrograms : public testing::Test {
 protected:
  // Without the variables of the tests' environment that would change what programs do.
  ProgramResult run(const std::string& program, const std::string& arguments) const {
    return run_program("/usr/bin/env",
                       {"HOLDFAST_START=", "HOLDFAST_ALONE=", "HOLDFAST_FAULTS=", "/bin/sh", "-c",
                        "cd '" + folder_.path() + "' && '" + built_program(program) + "' " + arguments});
  }
  // What edits prints at its end: "weights DIGEST".
  std::string weights_of(const std::string& arguments) const {
    const ProgramResult result = run("edits", arguments);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    const std::size_t at = result.output.find("weights ");
    EXPECT_NE(at, std::string::npos) << result.output;
    return at == std::string::npos ? result.output : result.output.substr(at, 8 + 32);
  }
  std::string refusal_of(const std::string& program, const std::string& arguments) const {
    const ProgramResult result = run(program, arguments);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    return result.output;
  }

  // The sentence that ended a training is in a page of the guide, which breaks lines where it likes.
  static void expect_in_page(const std::string& page, const std::string& output) {
    std::string text = read_file(source_folder() + "/docs/guide/" + page);
    std::ranges::replace(text, '\n', ' ');
    const std::size_t begin = output.find("training ended: ");
    ASSERT_NE(begin, std::string::npos) << output;
    std::string sentence = output.substr(begin, output.find('\n', begin) - begin);
    // In which replicas stands at its end, and is not the same in each run.
    sentence.resize(sentence.find(" (in "));
    EXPECT_THAT(text, HasSubstr(sentence));
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

// In editing.md.
TEST_F(GuidePrograms, TrainsLongerAsIfItHadBeenAskedForThatFromTheStart) {
  weights_of("--epochs 5");

  const std::string longer = weights_of("--epochs 7");

  EXPECT_EQ(longer, weights_of("--epochs 7 --run-dir other"));
  EXPECT_THAT(refusal_of("edits", "--epochs 3"), HasSubstr("epochs was 7 and is 3"));
}

TEST_F(GuidePrograms, NamesTheEditsThatAnotherTrainingNeedsAndKeepsTheRunOnAFreshStart) {
  const std::string first = weights_of("--epochs 7");

  const std::string refusal = refusal_of("edits", "--epochs 7 --rate 0.01 --units 9");
  const std::string fresh = weights_of("--epochs 7 --rate 0.01 --units 9 --fresh");

  expect_in_page("editing.md", refusal);
  EXPECT_NE(fresh, first);
  EXPECT_EQ(folder_.names(), (std::vector<std::string>{"run", "run.1"}));
}

TEST_F(GuidePrograms, GoesOnAtAnotherRateInACallThatIsAdded) {
  weights_of("--epochs 5");

  const ProgramResult result = run("edits", "--epochs 5 --then-rate 0.0005");

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("this run's fit() had finished at step 160"));
  EXPECT_THAT(result.output, HasSubstr("step 320 "));
  EXPECT_THAT(refusal_of("edits", "--epochs 5 --then-rate 0.0004"),
              HasSubstr("call 2 of the Trainer: data/optimizer/learning_rate was 0.0005 and is 0.0004"));
  EXPECT_THAT(refusal_of("edits", "--epochs 6 --then-rate 0.0005"), HasSubstr("cannot get more epochs"));
}

TEST_F(GuidePrograms, BeginsWithTheWeightsOfAnotherRunAndNeedsItsFileInEachStart) {
  weights_of("--epochs 5");
  const std::string tuning = "--run-dir tuned --from run/savepoint-0000000160.h5 --rate 0.01";

  const std::string tuned = weights_of(tuning);

  EXPECT_NE(tuned, weights_of("--run-dir drawn --rate 0.01"));
  EXPECT_EQ(weights_of(tuning), tuned);
  std::filesystem::rename(folder_ / "run", folder_ / "moved");
  EXPECT_THAT(refusal_of("edits", tuning), HasSubstr("cannot open run/savepoint-0000000160.h5"));
}

// In debugging.md.
TEST_F(GuidePrograms, NamesTheBatchThatIsNotFiniteAndShowsIt) {
  expect_in_page("debugging.md", refusal_of("bad_batch", ""));

  const std::string shown = refusal_of("bad_batch", "--debug --look 0 10");

  EXPECT_THAT(shown, HasSubstr("training alone in this process"));
  EXPECT_THAT(shown, HasSubstr(" nan -> "));
  EXPECT_THAT(refusal_of("bad_batch", "--debug --look 0 9"), Not(HasSubstr(" nan -> ")));
  EXPECT_THAT(refusal_of("bad_batch", "--debug --look 0 32"),
              HasSubstr("there is no batch 32; an epoch has the batches 0 to 31"));
  EXPECT_EQ(run("bad_batch", "--finite").exit_code, 0);
}

// Both replicas showed it, line by line among each other.
TEST_F(GuidePrograms, ShowsABatchOnceInTrainingOnTwoReplicas) {
  const std::string shown = refusal_of("bad_batch", "--look 0 10");

  const std::size_t first = shown.find(" nan -> ");
  ASSERT_NE(first, std::string::npos) << shown;
  EXPECT_EQ(shown.find(" nan -> ", first + 1), std::string::npos) << shown;
}

TEST_F(GuidePrograms, ShowsTheWeightsAfterEachStepAndWritesNothing) {
  const ProgramResult result = run("bad_batch", "--debug --finite");

  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("\nstep 10  model/hidden/kernel "));
  EXPECT_THAT(result.output, HasSubstr("\nstep 160  model/hidden/kernel "));
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(GuidePrograms, LearnsFewSamplesByHeartAndShowsALayer) {
  const ProgramResult result = run("bad_batch", "--few");

  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("loss 0.00"));
  EXPECT_THAT(result.output, HasSubstr("hidden gives -0."));
  EXPECT_TRUE(folder_.names().empty());
}

}  // namespace
}  // namespace holdfast
