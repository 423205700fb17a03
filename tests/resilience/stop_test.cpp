// A run that is told to stop ends soon, leaves a savepoint, and goes on where it was when it is started again.

#include <gtest/gtest.h>
#include <signal.h>

#include <set>
#include <thread>

#include "resilience/digits_run.h"

namespace holdfast {
namespace {

int count_savepoints(const TemporaryFolder& folder) {
  int count = 0;
  if (!std::filesystem::exists(folder / "run")) return 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run"))
    count += entry.path().extension() == ".h5" ? 1 : 0;
  return count;
}

// Until the run has written a savepoint, and so is training.
void wait_for_savepoint(const TemporaryFolder& folder) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (count_savepoints(folder) == 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), until) << "no savepoint was written";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::vector<std::string> long_run(const TemporaryFolder& folder) {
  return digits_arguments({.replicas = 2, .options = {{"--epochs", "1000"}}}, folder);
}

// Of all replicas that the journal knows.
std::set<int> replica_pids(const TemporaryFolder& folder) {
  std::set<int> pids;
  for (const nlohmann::json& line : journal_of(folder)) {
    if (line.contains("rank") && line.contains("pid")) pids.insert(line.at("pid").get<int>());
  }
  return pids;
}

bool is_saved_behind_the_stop(const TemporaryFolder& folder) {
  bool was_asked = false;
  for (const nlohmann::json& line : journal_of(folder)) {
    was_asked = was_asked || line.at("event") == "stop_requested";
    if (was_asked && line.at("event") == "savepoint") return true;
  }
  return false;
}

// The fault with this index.
bool has_struck(const TemporaryFolder& folder, int index) {
  const std::string marks = folder / "run/faults";
  if (!std::filesystem::exists(marks)) return false;
  for (const auto& entry : std::filesystem::directory_iterator(marks)) {
    if (entry.path().filename().string().starts_with(std::to_string(index) + "-")) return true;
  }
  return false;
}

// The savepoint that the run went on from last.
std::string origin_of_the_newest(const TemporaryFolder& folder) {
  std::string path;
  for (const nlohmann::json& line : journal_of(folder)) {
    if (line.at("event") == "resumed") path = line.at("details").at("path");
  }
  return path;
}

}  // namespace

class StoppedBy : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Signals, StoppedBy, testing::Values(SIGINT, SIGTERM));

TEST_P(StoppedBy, ARunLeavesASavepointAndAsksToBeStartedAgain) {
  const TemporaryFolder folder;
  RunningProgram program(built_program("digits"), long_run(folder));
  wait_for_savepoint(folder);

  program.signal(GetParam());
  const ProgramResult result = program.wait();

  EXPECT_EQ(result.exit_code, 75) << result.output;
  EXPECT_NE(result.output.find("start the same command again"), std::string::npos) << result.output;
  EXPECT_TRUE(is_saved_behind_the_stop(folder));
  const std::set<int> replicas = replica_pids(folder);
  EXPECT_EQ(replicas.size(), 2U);
  for (const int pid : replicas) EXPECT_EQ(::kill(pid, 0), -1) << "replica " << pid << " is still there";
}

TEST(Stop, ALaterStartGivesTheSameBits) {
  const TemporaryFolder folder;
  {
    RunningProgram program(built_program("digits"), digits_arguments({.replicas = 2}, folder));
    wait_for_savepoint(folder);
    program.signal(SIGTERM);
    const ProgramResult stopped = program.wait();
    ASSERT_TRUE(stopped.exit_code == 75 || stopped.exit_code == 0) << stopped.output;
  }

  const ProgramResult resumed = run_program(built_program("digits"), digits_arguments({.replicas = 2}, folder));

  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(report_of(folder).at("weights_digest"), undisturbed_digest());
}

// The write of the stop's savepoint never ends. The replica that stands still for a while at a known step makes known
// which savepoint that is; the run's periodic ones are others.
TEST(Stop, EndsInItsGraceThoughTheDiskIsStuckAndALaterStartTakesTheSavepointBefore) {
  const TemporaryFolder folder;
  std::vector<std::string> all{"run", "--run-dir", folder / "run", "--replicas", "2", "--stop-grace", "8"};
  for (const char* fault : {"rank=0,step=5,fault=pause,duration_ms=2000", "rank=0,step=6,phase=writing,fault=hang",
                            "rank=0,step=7,phase=writing,fault=hang"}) {
    all.insert(all.end(), {"--inject", fault});
  }
  const std::vector<std::string> digits = digits_arguments({}, folder);
  all.insert(all.end(), {"--", built_program("digits")});
  all.insert(all.end(), digits.begin(), digits.end());
  RunningProgram program(built_program("holdfast"), all);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!has_struck(folder, 0)) {
    ASSERT_LT(std::chrono::steady_clock::now(), until) << "the replica does not stand still";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  program.signal(SIGTERM);
  const ProgramResult result = program.wait();

  EXPECT_EQ(result.exit_code, 75) << result.output;
  EXPECT_NE(result.output.find("had to be killed after 8.000 s"), std::string::npos) << result.output;
  EXPECT_TRUE(has_struck(folder, 1) || has_struck(folder, 2)) << "the write was not stuck";
  EXPECT_EQ(count_savepoints(folder), 1);
  const std::string savepoint = folder / "run/savepoint-0000000004.h5";
  EXPECT_EQ(run_program(built_program("holdfast"), {"verify", savepoint}).exit_code, 0);
  for (const int pid : replica_pids(folder)) EXPECT_EQ(::kill(pid, 0), -1) << "replica " << pid << " is still there";

  const ProgramResult resumed = run_program(built_program("holdfast"), all);

  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(report_of(folder).at("weights_digest"), undisturbed_digest());
  EXPECT_EQ(origin_of_the_newest(folder), savepoint);
}

TEST(Stop, AFinishedRunSaysSoAndKeepsItsResult) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_program(built_program("digits"), digits_arguments({}, folder)).exit_code, 0);
  const nlohmann::json first = report_of(folder);
  std::filesystem::remove(folder / "report.json");

  const ProgramResult again = run_program(built_program("digits"), digits_arguments({}, folder));

  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_NE(again.output.find("finished at step 27"), std::string::npos) << again.output;
  EXPECT_EQ(report_of(folder), first);
}

TEST(Stop, ARunDirectoryHasOneOwner) {
  const TemporaryFolder folder;
  RunningProgram owner(built_program("digits"), long_run(folder));
  wait_for_savepoint(folder);

  const ProgramResult second = run_program(built_program("digits"), long_run(folder));

  EXPECT_EQ(second.exit_code, 1) << second.output;
  EXPECT_NE(second.output.find(folder / "run"), std::string::npos) << second.output;
  owner.signal(SIGTERM);
  EXPECT_EQ(owner.wait().exit_code, 75);
}

}  // namespace holdfast
