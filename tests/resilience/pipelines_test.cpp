// 24 pipelines of data, with all callbacks but ProgressLine, in runs whose processes die: weights, records and the
// state of callbacks are those of an undisturbed run. scripts/tests/kill_pipelines.py does the same at moments that are
// drawn, thousands of times.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "support/program.h"

namespace holdfast {
namespace {

struct LeftByPipeline {
  std::string weights_digest;
  std::string record;
  std::string last_savepoint;
};

// Files that all pipelines read, made once.
const std::string& data_folder() {
  static const TemporaryFolder folder;
  static const std::string data = [] {
    const ProgramResult result = run_program(built_program("pipelines_program"), {"--make", folder / "data"});
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return folder / "data";
  }();
  return data;
}

std::string last_savepoint(const std::string& run) {
  std::string last;
  for (const auto& entry : std::filesystem::directory_iterator(run)) {
    if (entry.path().extension() == ".h5") last = std::max(last, entry.path().string());
  }
  return last.empty() ? last : read_file(last);
}

LeftByPipeline left_by_pipeline(int pipeline, int replicas, const std::vector<std::string>& faults) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments = {"--run-dir",  folder / "run",           "--data",     data_folder(),
                                        "--pipeline", std::to_string(pipeline), "--replicas", std::to_string(replicas)};
  for (const std::string& fault : faults) {
    arguments.emplace_back("--inject");
    arguments.push_back(fault);
  }
  const ProgramResult result = run_program(built_program("pipelines_program"), arguments);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  if (result.exit_code != 0) return {};
  return {.weights_digest = nlohmann::json::parse(read_file(folder / "run/results.json")).at("weights_digest"),
          .record = read_file(folder / "run/log.csv"),
          .last_savepoint = last_savepoint(folder / "run")};
}

// The steps of the deaths are drawn, with a fixed seed so that a failure can be repeated. The shortest run has 27
// steps.
TEST(Pipelines, LeaveTheSameWhereverProcessesDie) {
  std::mt19937 draw(17);
  for (int pipeline = 0; pipeline < 24; ++pipeline) {
    const auto death = [&](int rank, unsigned first, unsigned steps) {
      return "rank=" + std::to_string(rank) + ",step=" + std::to_string(first + draw() % steps) + ",fault=kill";
    };
    const std::vector<std::string> deaths = {death(pipeline % 2, 0, 12), death(0, 12, 12)};
    SCOPED_TRACE("pipeline " + std::to_string(pipeline) + " with " + deaths[0] + " and " + deaths[1]);

    const LeftByPipeline undisturbed = left_by_pipeline(pipeline, 1, {});
    const LeftByPipeline disturbed = left_by_pipeline(pipeline, 2, deaths);

    EXPECT_EQ(disturbed.weights_digest, undisturbed.weights_digest);
    EXPECT_EQ(disturbed.record, undisturbed.record);
    // As a bool: a failure must not print the bytes.
    EXPECT_TRUE(disturbed.last_savepoint == undisturbed.last_savepoint && !undisturbed.last_savepoint.empty());
  }
}

// Replica 0 dies after its last savepoint has its name, and before the others know: they find the call finished there.
// The run ended without results.json then.
TEST(Pipelines, LeaveResultsWhereReplica0DiesAtTheEnd) {
  const LeftByPipeline undisturbed = left_by_pipeline(0, 1, {});

  const LeftByPipeline disturbed = left_by_pipeline(0, 2, {"rank=0,step=50,phase=after-rename,fault=kill"});

  EXPECT_EQ(disturbed.weights_digest, undisturbed.weights_digest);
  EXPECT_EQ(disturbed.record, undisturbed.record);
}

}  // namespace
}  // namespace holdfast
