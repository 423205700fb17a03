// Two Trainers in one run, the second of which trains on kept outputs of the first one's model, in runs whose processes
// die. Results, weights and records are those of an undisturbed run.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/program.h"

namespace holdfast {
namespace {

struct LeftByTrainers {
  std::string results;
  std::string first_record;
  std::string second_record;
  std::string outputs;  // that were kept

  bool operator==(const LeftByTrainers&) const = default;
};

LeftByTrainers read_trainers(const std::string& run) {
  return {.results = read_file(run + "/results.json"),
          .first_record = read_file(run + "/log.csv"),
          .second_record = read_file(run + "/trainer2/log.csv"),
          .outputs = read_file(run + "/features.cache")};
}

ProgramResult run_trainers(const TemporaryFolder& folder, int replicas, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"--run-dir", folder / "run", "--replicas", std::to_string(replicas)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(built_program("trainers_program"), arguments);
}

LeftByTrainers left_by_trainers(int replicas, const std::vector<std::string>& more) {
  const TemporaryFolder folder;
  const ProgramResult result = run_trainers(folder, replicas, more);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return result.exit_code == 0 ? read_trainers(folder / "run") : LeftByTrainers();
}

const LeftByTrainers& undisturbed_trainers() {
  static const LeftByTrainers left = left_by_trainers(1, {});
  return left;
}

void expect_undisturbed_trainers(const LeftByTrainers& left) {
  EXPECT_EQ(left.results, undisturbed_trainers().results);
  EXPECT_EQ(left.first_record, undisturbed_trainers().first_record);
  EXPECT_EQ(left.second_record, undisturbed_trainers().second_record);
  EXPECT_TRUE(left.outputs == undisturbed_trainers().outputs) << left.outputs.size() << " bytes";
}

std::string trainer_death(int rank, int step, const std::string& more = {}) {
  return "rank=" + std::to_string(rank) + ",step=" + std::to_string(step) + ",fault=kill" + more;
}

TEST(SeveralTrainers, LeaveTheSameOnAnyNumberOfReplicas) {
  const nlohmann::json results = nlohmann::json::parse(undisturbed_trainers().results);
  ASSERT_EQ(results.at("calls").size(), 4U);
  EXPECT_EQ(results.at("steps"), 9 + 27);
  EXPECT_EQ(results.at("calls")[2].at("history").size(), 3U);

  for (const int replicas : {2, 3}) expect_undisturbed_trainers(left_by_trainers(replicas, {}));
}

// Step 4 is of both, and strikes in the first. Steps from 9 on are of the second alone.
TEST(SeveralTrainers, LeaveTheSameWhicheverTrainerAProcessDiesIn) {
  for (const int step : {4, 9, 14, 26}) {
    for (const int rank : {0, 1}) {
      SCOPED_TRACE("death of rank " + std::to_string(rank) + " at step " + std::to_string(step));
      expect_undisturbed_trainers(left_by_trainers(2, {"--inject", trainer_death(rank, step)}));
    }
  }
  expect_undisturbed_trainers(
      left_by_trainers(2, {"--inject", trainer_death(1, 3), "--inject", trainer_death(0, 20, ",phase=update")}));
}

// It waits in the first Trainer, which a pause makes long enough, and is needed in the second.
TEST(SeveralTrainers, LeaveTheSameWhereASpareTakesOver) {
  const std::vector<std::string> spare = {"--spares", "1", "--inject", "rank=1,step=4,fault=pause,duration_ms=400"};
  for (const int rank : {0, 1}) {
    std::vector<std::string> options = spare;
    options.insert(options.end(), {"--inject", trainer_death(rank, 15)});
    expect_undisturbed_trainers(left_by_trainers(2, options));
  }
}

// Nobody survives, so the second Trainer goes on from memory or a savepoint, and not from a state of the first.
TEST(SeveralTrainers, LeaveTheSameWhereTheOnlyProcessDies) {
  for (const int step : {4, 9, 10, 14, 26}) {
    SCOPED_TRACE("death at step " + std::to_string(step));
    expect_undisturbed_trainers(left_by_trainers(1, {"--inject", trainer_death(0, step)}));
  }
}

TEST(SeveralTrainers, AnswerFromTheirRecordsInALaterStart) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_trainers(folder, 2, {}).exit_code, 0);
  const LeftByTrainers left = read_trainers(folder / "run");
  expect_undisturbed_trainers(left);
  std::filesystem::remove(folder / "run/results.json");

  const ProgramResult again = run_trainers(folder, 1, {});

  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_EQ(read_trainers(folder / "run"), left);
}

TEST(SeveralTrainers, RefuseMoreEpochsOfTheFirstOnceTheSecondHasBegun) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_trainers(folder, 1, {}).exit_code, 0);

  const ProgramResult again = run_trainers(folder, 1, {"--more-epochs", "1"});

  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.output.find("cannot get more epochs"), std::string::npos) << again.output;
}

}  // namespace
}  // namespace holdfast
