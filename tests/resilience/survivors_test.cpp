// Survivors keep their processes and their state, and the run continues with the same bits: with a spare, with a new
// process, with fewer replicas, from the watchdog's memory if no replica survives, or from a savepoint on request.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <iterator>

#include "resilience/digits_run.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// Runs to the end, reads the journal, and compares the weights with those of an undisturbed run.
class Survivors : public testing::Test {
 protected:
  void run(const DigitsRun& digits) { run(digits, folder_); }
  void run(const DigitsRun& digits, const TemporaryFolder& folder) {
    look_at(run_program(built_program("digits"), digits_arguments(digits, folder)), folder);
  }

  // The same run, but these ranks are killed in that step.
  void run_and_kill(const std::vector<int>& ranks, int step, const DigitsRun& digits) {
    look_at(HeldRun(digits, ranks, step, folder_).kill_and_wait(), folder_);
  }

  void look_at(const ProgramResult& result, const TemporaryFolder& folder) {
    ASSERT_EQ(result.exit_code, 0) << result.output;
    journal_ = journal_of(folder);
    EXPECT_EQ(report_of(folder).at("weights_digest"), undisturbed_digest());
    EXPECT_EQ(report_of(folder).at("steps"), 27);
  }

  std::vector<Json> events(const std::string& name) const {
    std::vector<Json> found;
    std::copy_if(journal_.begin(), journal_.end(), std::back_inserter(found),
                 [&](const Json& line) { return line.at("event") == name; });
    return found;
  }

  // The members of each generation, by rank.
  std::vector<std::vector<int>> generations() const {
    std::vector<std::vector<int>> opened;
    for (const Json& line : journal_) {
      for (const Json& action : line.value("actions", Json::array())) {
        if (action.at("action") == "open_generation") opened.push_back(action.at("members"));
      }
    }
    return opened;
  }

  // The origins of all states that no survivor brought along, in order.
  std::vector<std::string> origins() const {
    std::vector<std::string> paths;
    for (const Json& line : events("resumed")) paths.push_back(line.at("details").at("path"));
    return paths;
  }

  TemporaryFolder folder_;
  std::vector<Json> journal_;
};

// Which of the three processes is the spare is known only when two are ready.
TEST_F(Survivors, ReadNothingBackAndContinueWithTheSpareThatIsReady) {
  run_and_kill({1}, 13, {.replicas = 2, .options = {{"--spares", "1"}}});

  EXPECT_EQ(origins(), std::vector<std::string>{});
  ASSERT_GE(generations().size(), 2U);
  const std::vector<int> first = generations()[0];
  const std::vector<int> second = generations()[1];
  ASSERT_EQ(first.size(), 2U);
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(second[0], first[0]);
  EXPECT_EQ(first[0] + first[1] + second[1], 0 + 1 + 2);
}

TEST_F(Survivors, TakeTheFirstRankWhenItsProcessDies) {
  run_and_kill({0}, 13, {.replicas = 2, .options = {{"--spares", "1"}}});

  EXPECT_EQ(origins(), std::vector<std::string>{});
  ASSERT_GE(generations().size(), 2U);
  EXPECT_EQ(generations()[1].at(1), generations()[0].at(1));
}

TEST_F(Survivors, ContinueAloneAndTakeInTheNewProcessLater) {
  run({.replicas = 2, .faults = {kill_of(1, 4)}, .options = {{"--epochs", "3"}}});

  EXPECT_EQ(generations().at(1).at(0), 0);
  EXPECT_EQ(origins(), std::vector<std::string>{});
}

// The survivor then waits for the other's digest, and no difference has been found.
TEST_F(Survivors, KeepTheirStateWhenTheOtherDiesBeforeTheStatesAreCompared) {
  for (const char* const rank : {"0", "1"}) {
    const TemporaryFolder folder;
    run({.replicas = 2,
         .faults = {std::string("rank=") + rank + ",step=9,fault=kill,phase=after-update"},
         .options = {{"--memory-snapshot-every", "1"}, {"--save-every", "0"}}},
        folder);

    EXPECT_GE(generations().size(), 2U);
    EXPECT_EQ(origins(), std::vector<std::string>{}) << "of the death of rank " << rank;
  }
}

// The survivor has finished, and does not know what the dead replica was asked to write. So the last savepoint would
// never be written.
TEST_F(Survivors, RepeatTheLastStepsWhenTheFirstRankDiesDuringTheLastSavepoint) {
  run({.replicas = 2,
       .faults = {"rank=0,step=27,fault=kill,phase=before-rename"},
       .options = {{"--memory-snapshot-every", "5"}, {"--save-every", "0"}}});

  EXPECT_GE(generations().size(), 2U);
  ASSERT_EQ(origins().size(), 1U);
  EXPECT_EQ(origins()[0], "the snapshot in the watchdog's memory");
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/savepoint-0000000027.h5"));
}

// The end was asked for after a step whose state the survivor keeps, and a new process takes that state.
TEST_F(Survivors, EndWhereACallbackAskedForItAlthoughTheOtherDied) {
  for (const char* const when_lost : {"shrink", "wait"}) {
    const TemporaryFolder folder;
    const ProgramResult result = run_program(built_program("paced_program"),
                                             {"--run-dir", folder / "run", "--end-at", "7", "--when-lost", when_lost});

    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_NE(result.output.find("killed by signal 9"), std::string::npos) << result.output;
    EXPECT_NE(result.output.find("steps 7 weights"), std::string::npos) << result.output;
  }
}

TEST_F(Survivors, WaitForTheNewProcessOnRequest) {
  run({.replicas = 2, .faults = {kill_of(0, 4), kill_of(1, 20)}, .options = {{"--when-lost", "wait"}}});

  ASSERT_EQ(generations().size(), 3U);
  for (const std::vector<int>& members : generations()) EXPECT_EQ(members.size(), 2U);
  EXPECT_EQ(origins(), std::vector<std::string>{});
}

TEST_F(Survivors, LoseAtMostTheStepsSinceTheSnapshotInMemoryWhenAllDieAtOnce) {
  run_and_kill({0, 1}, 15, {.replicas = 2, .options = {{"--memory-snapshot-every", "2"}, {"--save-every", "0"}}});

  ASSERT_EQ(events("resumed").size(), 1U);
  EXPECT_EQ(events("resumed")[0].at("details").at("path"), "the snapshot in the watchdog's memory");
  EXPECT_EQ(events("resumed")[0].at("details").at("step"), 14);
}

TEST_F(Survivors, TakeASavepointThatIsNewerThanTheSnapshotInMemory) {
  run({.replicas = 1,
       .faults = {kill_of(0, 15)},
       .options = {{"--memory-snapshot-every", "9"}, {"--save-every", "1"}}});

  ASSERT_EQ(origins().size(), 1U);
  EXPECT_NE(origins()[0].find("savepoint-"), std::string::npos) << origins()[0];
}

TEST_F(Survivors, AreEndedWhenRecoveryUsesTheSavepoint) {
  run({.replicas = 2,
       .faults = {kill_of(1, 15)},
       .options = {{"--recover-from", "savepoint"}, {"--memory-snapshot-every", "1"}}});

  EXPECT_TRUE(events("checked_in").empty());
  ASSERT_EQ(origins().size(), 1U);
  EXPECT_NE(origins()[0].find("savepoint-"), std::string::npos) << origins()[0];
}

// The state in memory outlives all replicas, and the run with them.
TEST_F(Survivors, LeaveASavepointOfTheSnapshotInMemoryWhenTheRunGivesUp) {
  DigitsRun digits{.replicas = 1,
                   .faults = {kill_of(0, 15), kill_of(0, 15), kill_of(0, 15)},
                   .options = {{"--memory-snapshot-every", "1"}, {"--save-every", "0"}}};
  for (std::size_t i = 0; i < digits.faults.size(); ++i) digits.faults[i] += ",generation=" + std::to_string(i);

  const ProgramResult gave_up = run_program(built_program("digits"), digits_arguments(digits, folder_));
  EXPECT_EQ(gave_up.exit_code, 70) << gave_up.output;
  EXPECT_NE(gave_up.output.find("gave up at step 15"), std::string::npos) << gave_up.output;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/savepoint-0000000015.h5"));

  run({.replicas = 1, .options = {{"--save-every", "0"}}});
}

}  // namespace
}  // namespace holdfast
