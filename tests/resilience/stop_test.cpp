// A run that is asked to stop ends soon and leaves a savepoint. Started again, it continues where it was.

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
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

// Waits until the run has written a savepoint, so it is training.
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

// The process ids of all replicas that the journal knows.
std::set<int> replica_pids(const TemporaryFolder& folder) {
  std::set<int> pids;
  for (const nlohmann::json& line : journal_of(folder)) {
    if (line.contains("rank") && line.contains("pid")) pids.insert(line.at("pid").get<int>());
  }
  return pids;
}

bool is_saved_after_the_stop(const TemporaryFolder& folder) {
  bool was_asked = false;
  for (const nlohmann::json& line : journal_of(folder)) {
    was_asked = was_asked || line.at("event") == "stop_requested";
    if (was_asked && line.at("event") == "savepoint") return true;
  }
  return false;
}

constexpr int kPacedSteps = 520;

// A run that saves nothing before it is stopped.
std::vector<std::string> paced_run(const TemporaryFolder& folder, const std::vector<std::string>& faults = {}) {
  std::vector<std::string> all{"run", "--run-dir", folder / "run", "--replicas", "2"};
  // A write that hangs takes all the time of the grace.
  if (!faults.empty()) all.insert(all.end(), {"--stop-grace", "5"});
  for (const std::string& fault : faults) all.insert(all.end(), {"--inject", fault});
  all.insert(all.end(), {"--", built_program("paced_program"), "--run-dir", folder / "run"});
  return all;
}

std::vector<nlohmann::json> events(const TemporaryFolder& folder, const std::string& name) {
  std::vector<nlohmann::json> found;
  if (!std::filesystem::exists(folder / "run/journal.jsonl")) return found;
  for (const nlohmann::json& line : journal_of(folder)) {
    if (line.at("event") == name) found.push_back(line);
  }
  return found;
}

void wait_for_events(const TemporaryFolder& folder, const std::string& name, std::size_t count) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (events(folder, name).size() < count) {
    ASSERT_LT(std::chrono::steady_clock::now(), until) << "there is no event \"" << name << "\"";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::string any_savepoint(const TemporaryFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run")) {
    if (entry.path().extension() == ".h5") return entry.path();
  }
  return "";
}

// The step in a name such as "savepoint-0000000012.h5".
int step_of(const std::string& savepoint) {
  return std::stoi(savepoint.substr(savepoint.rfind('-') + 1));
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
  EXPECT_TRUE(is_saved_after_the_stop(folder));
  const std::set<int> replicas = replica_pids(folder);
  EXPECT_EQ(replicas.size(), 2U);
  for (const int pid : replicas) EXPECT_EQ(::kill(pid, 0), -1) << "replica " << pid << " is still there";
}

// Ctrl-C on `digits | tee log` ends tee, too. The watchdog, or rank 0, died of SIGPIPE, and nothing was saved.
TEST(Stop, LeavesASavepointAlthoughItsOutputIsClosed) {
  const TemporaryFolder folder;
  RunningProgram program(built_program("digits"), long_run(folder));
  wait_for_savepoint(folder);

  program.close_output();
  program.signal(SIGINT);

  EXPECT_EQ(program.wait().exit_code, 75);
  EXPECT_TRUE(is_saved_after_the_stop(folder));
}

// timeout(1) signals its child and the child's group. Counted as two requests, that ended runs without a savepoint.
TEST(Stop, LeavesASavepointAlthoughTheSignalCameTwice) {
  const TemporaryFolder folder;
  RunningProgram program(built_program("digits"), long_run(folder));
  wait_for_savepoint(folder);

  // Two equal signals might be delivered as one.
  program.signal(SIGTERM);
  program.signal(SIGINT);
  const ProgramResult result = program.wait();

  EXPECT_EQ(result.exit_code, 75);
  EXPECT_EQ(result.output.find("stopped at once"), std::string::npos) << result.output;
  EXPECT_TRUE(is_saved_after_the_stop(folder));
}

// A limit of file sizes killed the watchdog at the line of its journal that would have passed it.
TEST(Stop, IsNotForcedByAJournalThatMayNotGrow) {
  constexpr std::size_t kLimit = std::size_t{8} << 20;
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "run");
  std::ofstream(folder / "run/journal.jsonl") << std::string(kLimit - 200, ' ') << "\n";
  std::vector<std::string> arguments{"-c", "ulimit -f " + std::to_string(kLimit / 1024) + "; exec \"$@\"", "bash",
                                     built_program("digits")};
  for (const std::string& argument : digits_arguments({.replicas = 2}, folder)) arguments.push_back(argument);

  const ProgramResult result = run_program("/bin/bash", arguments);

  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("a line of the journal " + (folder / "run/journal.jsonl") + " is lost"),
            std::string::npos)
      << result.output;
  EXPECT_EQ(report_of(folder).at("weights_digest"), undisturbed_digest());
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

// Only a stop saves here. The first stop leaves a savepoint; the write of the second one never ends.
TEST(Stop, EndsInItsGraceAlthoughTheDiskHangsAndKeepsTheSavepointBefore) {
  const TemporaryFolder folder;
  RunningProgram first(built_program("holdfast"), paced_run(folder));
  wait_for_events(folder, "ready", 2);
  first.signal(SIGTERM);
  ASSERT_EQ(first.wait().exit_code, 75);
  ASSERT_EQ(count_savepoints(folder), 1);
  const std::string savepoint = any_savepoint(folder);
  const std::string content = read_file(savepoint);
  std::vector<std::string> stuck;
  for (int step = step_of(savepoint) + 1; step <= kPacedSteps; ++step) {
    stuck.push_back("rank=0,step=" + std::to_string(step) + ",phase=writing,fault=hang");
  }

  RunningProgram second(built_program("holdfast"), paced_run(folder, stuck));
  wait_for_events(folder, "resumed", 1);
  second.signal(SIGTERM);
  const ProgramResult result = second.wait();

  EXPECT_EQ(result.exit_code, 75) << result.output;
  EXPECT_NE(result.output.find("had to be killed after 5.0 s"), std::string::npos) << result.output;
  EXPECT_FALSE(std::filesystem::is_empty(folder / "run/faults")) << "no write was stuck";
  for (const int pid : replica_pids(folder)) EXPECT_EQ(::kill(pid, 0), -1) << "replica " << pid << " is still there";
  EXPECT_EQ(read_file(savepoint) == content, true);
  EXPECT_EQ(run_program(built_program("holdfast"), {"verify", savepoint}).exit_code, 0);

  const ProgramResult third = run_program(built_program("holdfast"), paced_run(folder));

  EXPECT_EQ(third.exit_code, 0) << third.output;
  const std::vector<nlohmann::json> resumed = events(folder, "resumed");
  ASSERT_EQ(resumed.size(), 2U);
  // The watchdog may have left a later savepoint, from the state in its memory.
  EXPECT_GE(resumed[1].at("details").at("step"), step_of(savepoint));
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
