// Processes that a replica has started end with the replica, whatever ends it: before its successor starts, with the
// run, and with a watchdog that is killed.

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "resilience/digits_run.h"
#include "support/comes_true.h"
#include "support/program.h"

namespace holdfast {
namespace {

// A zombie no longer runs, and reaping it is not the watchdog's task.
bool is_alive(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string word;
  file >> word >> word >> word;
  return file && word != "Z" && word != "X";
}

// For scripts. `start_two` is done when a child and a daemon in a session of its own are there, and their numbers in
// "child-NAME" and "daemon-NAME". `none_lives FILES` is true when no process whose number is in FILES is alive.
const std::string kFunctions = R"(
cd "$HOLDFAST_RUN_DIRECTORY"
start_two() {
  sleep 1000 & echo $! > child-$1
  setsid sh -c 'echo $$ > new-$0; mv new-$0 daemon-$0; trap : TERM HUP; while :; do sleep 0.1; done' $1 &
  until [ -e daemon-$1 ]; do sleep 0.01; done
}
none_lives() {
  for file in "$@"; do
    [ -e $file ] || continue
    case $(cut -d' ' -f3 /proc/$(cat $file)/stat 2>/dev/null) in ''|Z|X) ;; *) return 1;; esac
  done
}
)";

class Descendants : public ::testing::Test {
 protected:
  std::vector<std::string> arguments(const std::vector<std::string>& options, const std::string& script) const {
    std::vector<std::string> all{"run", "--run-dir", folder_ / "run"};
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--", "sh", "-c", kFunctions + script});
    return all;
  }

  ProgramResult run(const std::vector<std::string>& options, const std::string& script) const {
    return run_program(built_program("holdfast"), arguments(options, script));
  }

  std::string in_run(const std::string& name) const { return folder_ / "run/" + name; }
  bool is_there(const std::string& name) const { return std::filesystem::exists(in_run(name)); }

  bool is_anybody_left() const {
    for (const auto& entry : std::filesystem::directory_iterator(in_run(""))) {
      const std::string name = entry.path().filename();
      if (!name.starts_with("child-") && !name.starts_with("daemon-")) continue;
      std::string pid;
      std::ifstream(entry.path()) >> pid;
      if (is_alive(pid)) return true;
    }
    return false;
  }

  int count_events(const std::string& name) const {
    int count = 0;
    if (!is_there("journal.jsonl")) return 0;
    for (const nlohmann::json& line : journal_of(folder_)) count += line.at("event") == name ? 1 : 0;
    return count;
  }

  const TemporaryFolder folder_;
};

class DescendantsOfAReplicaThat : public Descendants, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Ends, DescendantsOfAReplicaThat,
                         ::testing::Values("exit 3", "kill -KILL $$", "kill -SEGV $$"));

TEST_P(DescendantsOfAReplicaThat, AreGoneBeforeItsReplacementStarts) {
  const std::string script = R"(
if mkdir first-$RANK 2>/dev/null; then
  start_two $RANK
  if [ $RANK = 1 ]; then )" + std::string(GetParam()) +
                             R"(; fi
  wait
fi
none_lives child-* daemon-* && touch none-$RANK
exit 0)";

  const ProgramResult result = run({"--plain", "--replicas", "2"}, script);

  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(is_there("child-1") && is_there("daemon-1"));
  EXPECT_TRUE(is_there("none-0"));
  EXPECT_TRUE(is_there("none-1"));
  EXPECT_GE(count_events("descendants_ended"), 1);
}

TEST_F(Descendants, AreGoneWhenTheRunHasFinished) {
  const ProgramResult result = run({"--plain", "--replicas", "2"}, "start_two $RANK; exit 0");

  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(is_there("child-0") && is_there("daemon-1"));
  EXPECT_FALSE(is_anybody_left());
}

TEST_F(Descendants, AreGoneWhenTheRunGivesUp) {
  const ProgramResult result = run({"--plain", "--replicas", "1", "--max-restarts", "0"}, "start_two 0; exit 3");

  EXPECT_EQ(result.exit_code, 70) << result.output;
  EXPECT_FALSE(is_anybody_left());
}

// The signal ends the shell at once; the processes that it started take longer.
TEST_F(Descendants, GetTimeToSaveWhenTheRunIsStopped) {
  const std::string script = R"(
sh -c 'trap "sleep 0.3; touch saved; exit 0" TERM; echo $$ > child-0; touch up; while :; do sleep 0.05; done' &
wait)";
  RunningProgram program(built_program("holdfast"), arguments({"--plain", "--replicas", "1"}, script));
  ASSERT_TRUE(comes_true([&] { return is_there("up"); }));

  program.signal(SIGTERM);

  const ProgramResult result = program.wait();
  EXPECT_EQ(result.exit_code, 75) << result.output;
  EXPECT_TRUE(is_there("saved"));
  EXPECT_FALSE(is_anybody_left());
}

TEST_F(Descendants, AreGoneAfterASecondSignal) {
  RunningProgram program(built_program("holdfast"),
                         arguments({"--plain", "--replicas", "1"}, "start_two 0; touch up; wait"));
  ASSERT_TRUE(comes_true([&] { return is_there("up"); }));
  program.signal(SIGTERM);
  ASSERT_TRUE(comes_true([&] { return count_events("stop_requested") == 1; }));
  ASSERT_TRUE(is_anybody_left()) << "the daemon takes no notice of SIGTERM";

  program.signal(SIGTERM);

  const ProgramResult result = program.wait();
  EXPECT_EQ(result.exit_code, 75) << result.output;
  EXPECT_FALSE(is_anybody_left());
}

TEST_F(Descendants, AreGoneWhenTheWatchdogWasKilled) {
  const std::string script = "mkdir first-$RANK || exit 0; start_two $RANK; touch up-$RANK; wait";
  const std::vector<std::string> all = arguments({"--plain", "--replicas", "2"}, script);
  RunningProgram program(built_program("holdfast"), all);
  ASSERT_TRUE(comes_true([&] { return is_there("up-0") && is_there("up-1"); }));
  ASSERT_TRUE(is_anybody_left());

  program.signal(SIGKILL);

  // Then no process is left that holds the output.
  const ProgramResult killed = program.wait();
  EXPECT_FALSE(killed.timed_out);
  EXPECT_EQ(killed.exit_code, 128 + SIGKILL);
  EXPECT_TRUE(comes_true([&] { return !is_anybody_left(); }));
  const ProgramResult next = run_program(built_program("holdfast"), all);
  EXPECT_EQ(next.exit_code, 0) << next.output;
}

// Survivors keep their children.
TEST_F(Descendants, AreGoneBeforeTheSuccessorOfTheirWorkerStarts) {
  std::string digits = "exec " + built_program("digits");
  for (const std::string& argument : digits_arguments({}, folder_)) digits += " " + argument;
  const std::string script =
      "none_lives child-$RANK-* daemon-$RANK-* || touch somebody-lived; start_two $RANK-$$; " + digits;

  const ProgramResult result = run({"--replicas", "2", "--start-when-gone", "--when-lost", "wait", "--inject",
                                    "rank=1,step=10,fault=kill", "--inject", "rank=0,step=20,fault=kill"},
                                   script);

  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(report_of(folder_).at("weights_digest"), undisturbed_digest());
  EXPECT_EQ(count_events("restart"), 2);
  EXPECT_FALSE(is_there("somebody-lived"));
  EXPECT_FALSE(is_anybody_left());
}

// As docs/recovery.md says.
TEST_F(Descendants, LiveOnWhenTheyHaveNoMark) {
  const std::string script = R"(
env -u HOLDFAST_DESCENDANT_OF setsid sh -c 'echo $$ > new; mv new kept; exec >/dev/null 2>&1; exec sleep 1000' &
until [ -e kept ]; do sleep 0.01; done)";

  const ProgramResult result = run({"--plain", "--replicas", "1"}, script);

  EXPECT_EQ(result.exit_code, 0) << result.output;
  const std::string pid = std::to_string(std::stoi(read_file(in_run("kept"))));
  EXPECT_TRUE(is_alive(pid));
  ::kill(std::stoi(pid), SIGKILL);
}

}  // namespace
}  // namespace holdfast
