// Steps of several batches, epochs that end within a pass, averages and constraints of weights, and predictions, in
// runs whose processes die. Weights, records and outputs are those of an undisturbed run.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "support/program.h"
#include "support/text/whole_lines.h"

namespace holdfast {
namespace {

struct Left {
  std::string weights_digest;
  std::string record;
  std::string outputs;

  bool operator==(const Left&) const = default;
};

std::string death_at(int rank, int step) {
  return "rank=" + std::to_string(rank) + ",step=" + std::to_string(step) + ",fault=kill";
}

Left left_by(int replicas, const std::vector<std::string>& more) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments = {"--run-dir",  folder / "run", "--outputs",
                                        folder / "o", "--replicas",   std::to_string(replicas)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ProgramResult result = run_program(built_program("options_program"), arguments);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  if (result.exit_code != 0) return {};
  return {.weights_digest = nlohmann::json::parse(read_file(folder / "run/results.json")).at("weights_digest"),
          .record = read_file(folder / "run/log.csv"),
          .outputs = read_file(folder / "o")};
}

const Left& undisturbed() {
  static const Left left = left_by(1, {});
  return left;
}

void expect_undisturbed(const Left& left) {
  EXPECT_EQ(left.weights_digest, undisturbed().weights_digest);
  EXPECT_EQ(left.record, undisturbed().record);
  // As a bool: a failure must not print the bytes.
  EXPECT_TRUE(left.outputs == undisturbed().outputs) << left.outputs.size() << " bytes";
}

TEST(FitOptionsInProcesses, LeaveTheSameOnAnyNumberOfReplicas) {
  ASSERT_EQ(undisturbed().outputs.size(), 90U * 3 * sizeof(float));

  for (const int replicas : {2, 3}) expect_undisturbed(left_by(replicas, {}));
}

// 25 steps in all. The steps are drawn, with a fixed seed so that a failure can be repeated.
TEST(FitOptionsInProcesses, LeaveTheSameWhereverProcessesDie) {
  std::mt19937 draw(20);
  for (int run = 0; run < 6; ++run) {
    const int first = static_cast<int>(draw() % 12);
    const int second = 12 + static_cast<int>(draw() % 13);
    SCOPED_TRACE("deaths at " + std::to_string(first) + " and " + std::to_string(second));
    const std::vector<std::string> deaths = {"--inject", death_at(run % 2, first), "--inject", death_at(0, second)};
    expect_undisturbed(left_by(2, deaths));
    std::vector<std::string> in_a_loop = deaths;
    in_a_loop.emplace_back("--loop");
    expect_undisturbed(left_by(2, in_a_loop));
  }
}

// Nobody survives, so the run goes on from memory or a savepoint.
TEST(FitOptionsInProcesses, LeaveTheSameWhereTheOnlyProcessDies) {
  for (const int step : {4, 5, 13}) expect_undisturbed(left_by(1, {"--inject", death_at(0, step)}));
}

// Each step takes a second, and the clock of a new process begins at 0. Without the time before the deaths, fit() would
// end more than ten steps later. After the last second, all replicas need up to two steps to agree.
TEST(FitOptionsInProcesses, EndByATimeLimitThatOutlivesDeaths) {
  const auto steps_of = [](int replicas, const std::vector<std::string>& faults) {
    const TemporaryFolder folder;
    std::vector<std::string> arguments = {"--run-dir", folder / "run", "--seconds",
                                          "20",        "--replicas",   std::to_string(replicas)};
    arguments.insert(arguments.end(), faults.begin(), faults.end());
    const ProgramResult result = run_program(built_program("options_program"), arguments);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return result.exit_code == 0 ? nlohmann::json::parse(read_file(folder / "run/results.json")).at("steps").get<int>()
                                 : 0;
  };
  const std::vector<std::string> deaths = {"--inject", death_at(0, 13), "--inject", death_at(0, 17)};

  for (const int replicas : {1, 2}) {
    for (const auto& faults : {std::vector<std::string>{}, deaths}) {
      const int steps = steps_of(replicas, faults);

      EXPECT_GE(steps, 20);
      EXPECT_LE(steps, 22);
    }
  }
}

// The savepoint at the end, whose record of changes belongs to its bytes.
std::string savepoint_at_the_end(const std::string& run) {
  std::vector<std::string> savepoints;
  for (const auto& entry : std::filesystem::directory_iterator(run)) {
    if (entry.path().extension() == ".h5") savepoints.push_back(entry.path().string());
  }
  return savepoints.empty() ? "" : *std::max_element(savepoints.begin(), savepoints.end());
}

std::vector<nlohmann::json> changes_in_the_journal(const std::string& run) {
  std::vector<nlohmann::json> changes;
  for (const std::string& line : whole_lines(run + "/journal.jsonl")) {
    const nlohmann::json event = nlohmann::json::parse(line);
    if (event.at("event") == "batch_changed") changes.push_back(event.at("details"));
  }
  return changes;
}

// A death without a replacement makes the batch smaller. When a new process joins is chance, and so it is recorded.
TEST(FitOptionsInProcesses, ReplayABatchThatFollowedTheReplicas) {
  const auto train = [](const TemporaryFolder& folder, int replicas, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--run-dir", folder / "run", "--per-replica", "--replicas",
                                          std::to_string(replicas)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(built_program("options_program"), arguments);
    ASSERT_EQ(result.exit_code, 0) << result.output;
  };
  const TemporaryFolder first;
  train(first, 3, {"--inject", death_at(1, 7), "--inject", death_at(0, 40)});
  const std::string recorded = savepoint_at_the_end(first / "run");
  const std::vector<nlohmann::json> changes = changes_in_the_journal(first / "run");

  ASSERT_GE(changes.size(), 2U);
  EXPECT_EQ(changes[0], (nlohmann::json{{"step", 0}, {"replicas", 3}, {"samples", 12}, {"rate_for_replicas", 2}}));
  EXPECT_EQ(changes[1].at("replicas"), 2);
  EXPECT_EQ(changes[1].at("samples"), 8);
  for (const int replicas : {1, 2}) {
    const TemporaryFolder again;
    train(again, replicas, {"--replay", recorded, "--inject", death_at(0, 20)});
    EXPECT_TRUE(read_file(savepoint_at_the_end(again / "run")) == read_file(recorded));
    EXPECT_EQ(read_file(again / "run/log.csv"), read_file(first / "run/log.csv"));
  }
}

TEST(FitOptionsInProcesses, PredictAgainWhereAReplicaDiesWhileItPredicts) {
  for (const char* sample : {"0", "40", "88"}) {
    expect_undisturbed(left_by(2, {"--die-at", sample}));
    expect_undisturbed(left_by(1, {"--die-at", sample}));
  }
}

}  // namespace
}  // namespace holdfast
