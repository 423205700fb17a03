// `holdfast chaos --hosts`: a program on several addresses of this machine, whose replicas and watchdogs are killed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "resilience/digits_run.h"
#include "support/program.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// A replica of each host, the program on the second host, and the one on the first host, which decides for the run.
TEST(ChaosOnHosts, FindsTheSameWeightsWhateverIsKilled) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments = {"chaos", "--hosts", "2", "--replicas", "1", "--each"};
  for (const std::string fault : {"rank=0,step=5,fault=kill", "rank=1,step=10,fault=kill",
                                  "rank=1,step=10,fault=kill-watchdog", "rank=0,step=10,fault=kill-watchdog"}) {
    arguments.insert(arguments.end(), {"--fault", fault});
  }
  arguments.insert(arguments.end(), {"--", built_program("digits")});
  const std::vector<std::string> digits =
      digits_arguments({.options = {{"--run-dir", "{run_dir}"}, {"--replicas", "{replicas}"}}}, folder);
  arguments.insert(arguments.end(), digits.begin(), digits.end());

  const ProgramResult result = run_program(built_program("holdfast"), arguments);

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("4 cases, 4 same digest"));
  EXPECT_THAT(result.output, ContainsRegex("undisturbed: weights " + undisturbed_digest()));
}

}  // namespace
}  // namespace holdfast
