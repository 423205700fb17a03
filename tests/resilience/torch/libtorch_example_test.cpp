// Modules of LibTorch keep the bits of an undisturbed run on any number of replicas and after failures on the way. Both
// models of examples/libtorch: one has moving statistics, the other draws.

#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "holdfast/testing/expect_survives.h"
#include "holdfast/testing/fault_matrix.h"
#include "support/folders.h"
#include "support/program.h"

namespace holdfast {
namespace {

using recovery::FaultPhase;
using resilience::expect_survives;

// The example writes a savepoint after step 20.
constexpr int kSteps = 27;

std::vector<std::string> libtorch_arguments(const std::string& model, const std::string& replicas,
                                            const std::string& run_directory) {
  return {"--model", model, "--replicas", replicas,     "--shards", "4", "--steps", std::to_string(kSteps),
          "--seed",  "11",  "--run-dir",  run_directory};
}

// The run that expect_survives() compares with is on two replicas.
resilience::Program libtorch_program(const std::string& model) {
  std::vector<std::string> command = libtorch_arguments(model, "{replicas}", "{run_dir}");
  command.insert(command.begin(), built_program("libtorch"));
  return {.command = command};
}

ProgramResult run_of_libtorch(const std::string& model, int replicas, const TemporaryFolder& folder,
                              const std::string& fault = "") {
  std::vector<std::string> arguments = libtorch_arguments(model, std::to_string(replicas), folder / "run");
  arguments.insert(arguments.end(), {"--report", folder / "report.json"});
  if (!fault.empty()) arguments.insert(arguments.end(), {"--inject", fault});
  return run_program(built_program("libtorch"), arguments);
}

std::string digest_of(const TemporaryFolder& folder) {
  const nlohmann::json report = nlohmann::json::parse(read_file(folder / "report.json"));
  EXPECT_EQ(report.at("steps"), kSteps);
  return report.at("weights_digest");
}

std::string undisturbed_digest_on(int replicas, const std::string& model) {
  const TemporaryFolder folder;
  const ProgramResult result = run_of_libtorch(model, replicas, folder);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return result.exit_code == 0 ? digest_of(folder) : "failed on " + std::to_string(replicas);
}

class LibTorchModel : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, LibTorchModel, testing::Values("resnet", "transformer"));

TEST_P(LibTorchModel, GivesTheSameBitsOnAnyNumberOfReplicas) {
  const std::string alone = undisturbed_digest_on(1, GetParam());
  EXPECT_EQ(undisturbed_digest_on(2, GetParam()), alone);
  EXPECT_EQ(undisturbed_digest_on(4, GetParam()), alone);
}

TEST_P(LibTorchModel, SurvivesTheDeathOfAReplicaInEachPartOfAStep) {
  for (const char* phase : {"forward", "reduce", "before-update"}) {
    expect_survives(libtorch_program(GetParam()), {std::string("rank=1,step=10,fault=kill,phase=") + phase});
  }
  expect_survives(libtorch_program(GetParam()), {"rank=0,step=23,fault=kill"});
}

TEST_P(LibTorchModel, SurvivesAHang) {
  expect_survives(libtorch_program(GetParam()), {"rank=1,step=10,fault=hang"});
}

TEST_P(LibTorchModel, SurvivesNumbersThatAreNotFinite) {
  expect_survives(libtorch_program(GetParam()), {"rank=1,step=10,fault=nan,target=loss"});
  expect_survives(libtorch_program(GetParam()), {"rank=0,step=15,fault=nan,target=gradient,phase=backward"});
}

TEST_P(LibTorchModel, GoesOnFromASavepointOnAnotherNumberOfReplicas) {
  const TemporaryFolder folder;
  // Once the savepoint has its name, however long that took.
  const ProgramResult killed =
      run_of_libtorch(GetParam(), 4, folder, "rank=0,step=20,phase=after-rename,fault=kill-watchdog");
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;

  const ProgramResult resumed = run_of_libtorch(GetParam(), 1, folder);

  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_NE(resumed.output.find("savepoint"), std::string::npos) << resumed.output;
  EXPECT_EQ(digest_of(folder), undisturbed_digest_on(1, GetParam()));
}

// The sample has only phases that each run gets to, whenever it makes memory snapshots.
TEST_P(LibTorchModel, SurvivesASampleOfAllFaults) {
  const std::vector<resilience::Case> sample = resilience::sample_of(
      resilience::fault_matrix(
          {.phases = {FaultPhase::forward, FaultPhase::backward, FaultPhase::reduce, FaultPhase::before_update,
                      FaultPhase::after_update, FaultPhase::writing, FaultPhase::before_rename},
           .savepoint_step = 20}),
      5, 18);
  resilience::ResilienceTest& test =
      resilience::resilience_test_of(libtorch_program(GetParam()), std::chrono::minutes(2));
  for (const resilience::Case& one : sample) {
    SCOPED_TRACE(one.name);
    const resilience::CaseResult result = test.run(one);
    EXPECT_TRUE(has_survived(result.verdict)) << to_string(result.verdict) << ": " << result.sentence << "\n"
                                              << result.run.output;
    EXPECT_GE(result.run.faults_struck, 1) << result.run.output;
  }
}

}  // namespace
}  // namespace holdfast
