// Callbacks that block, and the results of a run without ModelCheckpoint.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/comes_true.h"
#include "support/program.h"

namespace holdfast {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

class BlockingCallback : public ::testing::Test {
 protected:
  std::vector<std::string> arguments(int hang_after, int callback_timeout) const {
    return {folder_ / "run", std::to_string(hang_after), std::to_string(callback_timeout)};
  }

  bool blocks() const {
    return comes_true([&] { return std::filesystem::exists(folder_ / "run/blocked"); });
  }
  void release() const { std::ofstream(folder_ / "run/released").close(); }

  // The last line may not be complete yet.
  std::vector<std::string> causes() const {
    std::vector<std::string> causes;
    std::ifstream file(folder_ / "run/journal.jsonl");
    for (std::string text; std::getline(file, text);) {
      const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
      if (!line.is_discarded() && line.at("event") == "restart") causes.push_back(line.at("restart").at("cause"));
    }
    return causes;
  }
  bool is_replaced() const {
    return comes_true([&] { return !causes().empty(); });
  }

  const TemporaryFolder folder_;
};

// The peers waited for four times the longest limit, and the limit of callbacks was not counted.
TEST_F(BlockingCallback, IsNotTakenForAHangAndItsPeersWaitForIt) {
  constexpr std::chrono::seconds kLongerThanPeersWaited(5);
  RunningProgram program(built_program("blocking_program"), arguments(1000, 60'000));
  ASSERT_TRUE(blocks());

  const Deadline enough = Deadline::after(kLongerThanPeersWaited);
  ASSERT_TRUE(comes_true([&] { return enough.has_passed(); }));
  release();
  const ProgramResult result = program.wait();

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(causes(), IsEmpty());
}

TEST_F(BlockingCallback, IsReplacedAfterItsOwnLimitAndTheOptionIsNamed) {
  RunningProgram program(built_program("blocking_program"), arguments(60'000, 500));

  ASSERT_TRUE(blocks());
  EXPECT_TRUE(is_replaced());
  release();

  EXPECT_EQ(program.wait().exit_code, 0);
  EXPECT_THAT(causes(), Contains(AllOf(HasSubstr("in phase callbacks at step 4"),
                                       HasSubstr("if this may take longer, set a longer callback_timeout"))));
}

TEST_F(BlockingCallback, IsReportedWithTheOptionOfTheRunCommand) {
  std::vector<std::string> all{"run",        "--run-dir", folder_ / "run",
                               "--replicas", "2",         "--callback-timeout",
                               "0.5",        "--",        built_program("blocking_program")};
  for (const std::string& argument : arguments(60'000, 0)) all.push_back(argument);
  RunningProgram program(built_program("holdfast"), all);

  ASSERT_TRUE(blocks());
  EXPECT_TRUE(is_replaced());
  release();

  EXPECT_EQ(program.wait().exit_code, 0);
  EXPECT_THAT(causes(), Contains(HasSubstr("if this may take longer, set a longer --callback-timeout")));
}

TEST_F(BlockingCallback, LeavesARunThatReturnsItsResultsWhenItIsStartedAgain) {
  std::filesystem::create_directory(folder_ / "run");
  release();
  const ProgramResult first = run_program(built_program("blocking_program"), arguments(60'000, 0));
  ASSERT_EQ(first.exit_code, 0) << first.output;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/savepoint-0000000012.h5"));

  const ProgramResult again = run_program(built_program("blocking_program"), arguments(60'000, 0));

  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("this run's fit() had finished at step 12"));
  const std::size_t digest = first.output.find("weights ");
  ASSERT_NE(digest, std::string::npos) << first.output;
  EXPECT_THAT(again.output, HasSubstr(first.output.substr(digest, 40)));
}

}  // namespace
}  // namespace holdfast
