// The weights at the end are the same, bit for bit, on any number of replicas and after any failure on the way.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>

#include "resilience/digits_run.h"

namespace holdfast {
namespace {

void expect_same_bits(const DigitsRun& run, int restarts) {
  const nlohmann::json report = completed(run);
  EXPECT_EQ(report.at("weights_digest"), undisturbed_digest());
  EXPECT_EQ(report.at("steps"), 27);
  EXPECT_EQ(report.at("restarts").size(), static_cast<std::size_t>(restarts)) << report.at("restarts").dump();
}

std::string fault(int rank, int step, const std::string& rest) {
  return "rank=" + std::to_string(rank) + ",step=" + std::to_string(step) + "," + rest;
}

// The lines of the journal with this event.
int count_events(const TemporaryFolder& folder, const std::string& event) {
  int count = 0;
  for (const nlohmann::json& line : journal_of(folder)) count += line.at("event") == event ? 1 : 0;
  return count;
}

}  // namespace

class OnReplicas : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Counts, OnReplicas, testing::Values(1, 2, 3, 4));

TEST_P(OnReplicas, TrainingUndisturbedGivesTheSameBits) {
  expect_same_bits({.replicas = GetParam()}, 0);
}

// Steps: the first one, one before the first savepoint, one at a savepoint, one between two, and the last one.
TEST_P(OnReplicas, KillingAnyRankAtAnyStepGivesTheSameBits) {
  for (int rank = 0; rank < GetParam(); ++rank) {
    for (const int step : {0, 3, 8, 17, 26}) {
      SCOPED_TRACE("rank " + std::to_string(rank) + ", step " + std::to_string(step));
      expect_same_bits({.replicas = GetParam(), .faults = {fault(rank, step, "fault=kill")}}, 1);
    }
  }
}

// Three batches of a step in four shards: the bits of one replica are those of a batch three times as large in twelve
// shards, and stay so when the ranks connect twice in each generation.
TEST_P(OnReplicas, KillingARankThatAddsThreeBatchesGivesTheSameBits) {
  const std::map<std::string, std::string> accumulated = {{"--accumulate", "3"}, {"--epochs", "6"}};
  const nlohmann::json larger =
      completed({.replicas = 1, .options = {{"--batch", "24"}, {"--shards", "12"}, {"--epochs", "6"}}});
  for (const int step : {0, 4, 9}) {
    const nlohmann::json report = completed(
        {.replicas = GetParam(), .faults = {fault(GetParam() - 1, step, "fault=kill")}, .options = accumulated});
    EXPECT_EQ(report.at("weights_digest"), larger.at("weights_digest")) << "step " << step;
    EXPECT_EQ(report.at("restarts").size(), 1U) << "step " << step;
  }
}

TEST_P(OnReplicas, StoppingARankGivesTheSameBits) {
  expect_same_bits({.replicas = GetParam(), .faults = {fault(GetParam() - 1, 10, "fault=stop")}}, 1);
}

TEST_P(OnReplicas, ThrowingInTheTrainingFunctionGivesTheSameBits) {
  expect_same_bits({.replicas = GetParam(), .faults = {fault(GetParam() - 1, 10, "fault=throw")}}, 1);
}

TEST_P(OnReplicas, KillingTheWriterOfASavepointGivesTheSameBits) {
  expect_same_bits({.replicas = GetParam(), .faults = {fault(0, 12, "fault=kill,phase=save")}}, 1);
}

TEST_P(OnReplicas, KillingTheWatchdogAndStartingAgainGivesTheSameBits) {
  const TemporaryFolder folder;
  const DigitsRun run{.replicas = GetParam(), .faults = {fault(0, 14, "fault=kill-watchdog")}};

  const ProgramResult killed = run_program(built_program("digits"), digits_arguments(run, folder));
  const ProgramResult resumed = run_program(built_program("digits"), digits_arguments(run, folder));

  EXPECT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(report_of(folder).at("weights_digest"), undisturbed_digest());
  EXPECT_GE(count_events(folder, "resumed"), 1);
}

TEST(SameBits, SurviveFaultsInEveryPhase) {
  for (const char* phase : {"compute", "reduce", "update"}) {
    SCOPED_TRACE(phase);
    expect_same_bits({.replicas = 2, .faults = {fault(1, 9, std::string("fault=kill,phase=") + phase)}}, 1);
  }
}

TEST(SameBits, SurviveAHangAndAnEarlyExit) {
  expect_same_bits({.replicas = 2, .faults = {fault(1, 5, "fault=hang")}, .options = {{"--hang-after", "5"}}}, 1);
  expect_same_bits({.replicas = 2, .faults = {fault(1, 5, "fault=exit")}}, 1);
}

// Without waiting for a new process, the third fault would find no replica of its rank.
TEST(SameBits, SurviveSeveralFailuresInOneRun) {
  expect_same_bits(
      {.replicas = 3,
       .faults = {fault(0, 2, "fault=kill"), fault(2, 11, "fault=throw"), fault(1, 20, "fault=kill,phase=update")},
       .options = {{"--when-lost", "wait"}}},
      3);
}

TEST(SameBits, SurviveTwoDeathsAtOnce) {
  const nlohmann::json report =
      completed({.replicas = 3, .faults = {fault(0, 6, "fault=kill"), fault(2, 6, "fault=kill")}});

  EXPECT_EQ(report.at("weights_digest"), undisturbed_digest());
}

TEST(SameBits, StayWhenTheNumberOfReplicasChangesOnTheWay) {
  const TemporaryFolder folder;
  const ProgramResult killed =
      run_program(built_program("digits"),
                  digits_arguments({.replicas = 4, .faults = {fault(1, 14, "fault=kill-watchdog")}}, folder));
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;

  const ProgramResult resumed = run_program(built_program("digits"), digits_arguments({.replicas = 3}, folder));

  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(report_of(folder).at("weights_digest"), undisturbed_digest());
}

// Bytes change in the middle of the newest savepoint while no process runs.
TEST(SameBits, StayWhenTheNewestSavepointIsDamaged) {
  const TemporaryFolder folder;
  const ProgramResult killed =
      run_program(built_program("digits"),
                  digits_arguments({.replicas = 2, .faults = {fault(1, 14, "fault=kill-watchdog")}}, folder));
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
  std::vector<std::filesystem::path> savepoints;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run")) {
    if (entry.path().extension() == ".h5") savepoints.push_back(entry.path());
  }
  ASSERT_GE(savepoints.size(), 2U);
  const std::filesystem::path newest = *std::max_element(savepoints.begin(), savepoints.end());
  {
    std::fstream file(newest, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(20'000);
    const auto byte = static_cast<char>(file.get() ^ 1);
    file.seekp(20'000);
    file.put(byte);
  }

  const ProgramResult resumed = run_program(built_program("digits"), digits_arguments({.replicas = 2}, folder));

  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(report_of(folder).at("weights_digest"), undisturbed_digest());
  EXPECT_TRUE(std::filesystem::exists(newest.string() + ".damaged"));
  EXPECT_EQ(count_events(folder, "savepoint_set_aside"), 1);
}

TEST(SameBits, DoNotDependOnWhenSavepointsAreWritten) {
  EXPECT_EQ(completed({.replicas = 2, .options = {{"--save-every", "0"}}}).at("weights_digest"), undisturbed_digest());
}

}  // namespace holdfast
