// The watchdog with real processes, sockets and shared memory. Each test runs recovery_worker with a script of what
// happens.

#include "holdfast/recovery/watchdog.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "holdfast/base/deadline.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/recovery/run_report.h"
#include "support/comes_true.h"
#include "support/folders.h"
#include "support/temporary_folder.h"
#include "support/text/whole_lines.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

const std::string kProgram = program_folder() + "/recovery_worker";

class RunDirectory : public TemporaryFolder {
 public:
  std::vector<Json> journal() const {
    std::vector<Json> lines;
    for (const std::string& text : whole_lines(path() + "/journal.jsonl")) lines.push_back(Json::parse(text));
    return lines;
  }

  std::vector<Json> events(const std::string& name) const {
    std::vector<Json> found;
    for (const Json& line : journal()) {
      if (line.at("event") == name) found.push_back(line);
    }
    return found;
  }

  std::vector<std::string> causes() const {
    std::vector<std::string> causes;
    for (const Json& line : events("restart")) causes.push_back(line.at("restart").at("cause"));
    return causes;
  }
};

WatchdogOptions options_for(const RunDirectory& directory, int replicas, const std::vector<std::string>& script) {
  WatchdogOptions options{.replicas = replicas,
                          .recovery = {.max_restarts = 3},
                          .run_directory = directory.path(),
                          .command = {kProgram, directory.path(), std::to_string(replicas)},
                          .executable = kProgram};
  options.command.insert(options.command.end(), script.begin(), script.end());
  return options;
}

RunOutcome run(const RunDirectory& directory, int replicas, const std::vector<std::string>& script) {
  return run_watchdog(options_for(directory, replicas, script));
}

bool all_work(const RunDirectory& directory, std::size_t replicas) {
  return comes_true([&] { return directory.events("working").size() >= replicas; });
}

// A watchdog in its own process, as in an application.
class Program {
 public:
  Program(const RunDirectory& directory, int replicas, const std::vector<std::string>& script) {
    std::vector<std::string> arguments{kProgram, directory.path(), std::to_string(replicas)};
    arguments.insert(arguments.end(), script.begin(), script.end());
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, kProgram.c_str(), nullptr, nullptr, pointers.data(), environ), 0);
  }
  ~Program() {
    if (pid_ > 0) kill(SIGKILL);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void signal(int number) const { ::kill(pid_, number); }

  // Waits for the end, and returns the wait status.
  int wait() {
    int status = -1;
    const bool has_ended = comes_true([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; });
    EXPECT_TRUE(has_ended) << "process " << pid_ << " did not end";
    if (has_ended) pid_ = -1;
    return status;
  }

  int kill(int number) {
    signal(number);
    return wait();
  }

 private:
  pid_t pid_ = -1;
};

std::vector<FileDescriptor> watch_processes(const std::vector<Json>& lines) {
  std::vector<FileDescriptor> descriptors;
  for (const Json& line : lines) {
    descriptors.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, line.at("pid").get<int>(), 0)));
  }
  return descriptors;
}

bool has_ended(const FileDescriptor& process) {
  pollfd wanted{.fd = process.value(), .events = POLLIN, .revents = 0};
  return ::poll(&wanted, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) == 1;
}

bool has_child() {
  return ::waitpid(-1, nullptr, WNOHANG) >= 0;
}

TEST(Watchdog, EndsWithZeroWhenAllReplicasHaveFinished) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 3, {"train", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitFinished);
  EXPECT_EQ(outcome.sentence, "finished");
  EXPECT_EQ(directory.events("ready").size(), 3U);
  EXPECT_THAT(directory.causes(), ElementsAre());
  EXPECT_FALSE(has_child());
}

TEST(Watchdog, PassesAConfigOfAnyLengthToEveryWorker) {
  const RunDirectory directory;
  WatchdogOptions options = options_for(directory, 2, {"echo_config", "finish"});
  options.worker_config = "\"" + std::string(1'000'000, 'x') + "\"";

  const RunOutcome outcome = run_watchdog(options);

  EXPECT_EQ(outcome.exit_code, kExitFinished);
  ASSERT_EQ(directory.events("config").size(), 2U);
  EXPECT_EQ(directory.events("config")[1].at("details").get<std::string>().size(), 1'000'000U);
}

TEST(Watchdog, RestartsAllReplicasWhenOneIsKilled) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 2, {"compute", "kill@1:0", "wait_for_a_peer@0:0", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitFinished);
  EXPECT_THAT(directory.causes(), ElementsAre("killed by signal 9 (SIGKILL)"));
  const Json restart = directory.events("restart").at(0).at("restart");
  EXPECT_EQ(restart.at("rank"), 1);
  EXPECT_EQ(restart.at("generation"), 0);
  EXPECT_EQ(restart.at("step"), 7);
}

TEST(Watchdog, EndsARunInWhichOneStepFailsRepeatedly) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 1, {"compute", "kill@0:0", "kill@0:1", "kill@0:2", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitGaveUp);
  EXPECT_THAT(outcome.sentence, HasSubstr("gave up at step 7"));
}

// The process waits for its peers before a step, but has not begun the step.
TEST(Watchdog, BlamesNoStepForDeathsOnTheWayToIt) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 1, {"wait", "kill@0:0", "kill@0:1", "kill@0:2", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitFinished) << outcome.sentence;
  EXPECT_EQ(directory.causes().size(), 3U);
  EXPECT_EQ(directory.events("restart").at(2).at("restart").at("step"), -1);
}

TEST(Watchdog, StartsASuccessorAfterTheConfirmedEndOnRequest) {
  const RunDirectory directory;
  WatchdogOptions options = options_for(directory, 2, {"compute", "kill@1:0", "wait_for_a_peer@0:0", "finish"});
  options.recovery.start_when_gone = true;
  options.recovery.when_lost = WhenLost::wait;

  const RunOutcome outcome = run_watchdog(options);

  EXPECT_EQ(outcome.exit_code, kExitFinished) << outcome.sentence;
  std::vector<std::string> starters;
  for (const Json& line : directory.journal()) {
    const Json actions = line.value("actions", Json::array());
    const Json start{{"action", "start_process"}, {"member", 2}, {"place", 1}};
    if (std::find(actions.begin(), actions.end(), start) != actions.end()) starters.push_back(line.at("event"));
  }
  EXPECT_THAT(starters, ElementsAre("exited"));
}

TEST(Watchdog, TriesADeviceSlotAgainThatWasLeftOutAndUsesItWhenItWorks) {
  const RunDirectory directory;
  Program program(directory, 2, {"fails=3", "place_rest=200", "until_stop"});
  const auto is_said = [&](const std::string& text) {
    const std::vector<Json> lines = directory.journal();
    return std::any_of(lines.begin(), lines.end(),
                       [&](const Json& line) { return line.value("reason", "").find(text) != std::string::npos; });
  };

  EXPECT_TRUE(comes_true([&] { return is_said("device slot 1 is used again"); }));

  EXPECT_TRUE(is_said("device slot 1 is left out: 3 failures in a row"));
  EXPECT_TRUE(is_said("generation 0 opens with 1 replica"));
  EXPECT_TRUE(is_said("device slot 1 has rested and is tried again"));
  EXPECT_EQ(WEXITSTATUS(program.kill(SIGTERM)), kExitStopped);
  const std::vector<RunReport::Rest> rests = read_run_report(directory.path() + "/journal.jsonl").rests;
  ASSERT_EQ(rests.size(), 1U);
  EXPECT_EQ(rests[0].device_slot, 1);
  EXPECT_EQ(rests[0].seconds, 0.2);
  EXPECT_GE(rests[0].tried.value(), rests[0].began);
  EXPECT_EQ(rests[0].tried_by, rests[0].shown_well_by);
  EXPECT_TRUE(rests[0].used_again.has_value());
}

// The signal was lost: it came when the loop that takes signals was told to end.
TEST(Watchdog, SaysThatItWasAskedToStopAsTheRunEnded) {
  const RunDirectory directory;
  bool is_sent = false;
  set_log_sink([&is_sent](LogLevel, std::string_view line) {
    if (line.find("all processes are gone") == std::string_view::npos || is_sent) return;
    is_sent = true;
    ::raise(SIGTERM);
  });

  const RunOutcome outcome = run(directory, 1, {"finish"});
  set_log_sink({});

  EXPECT_TRUE(is_sent);
  EXPECT_EQ(outcome.exit_code, kExitFinished) << outcome.sentence;
  EXPECT_TRUE(outcome.is_stop_requested);
  EXPECT_TRUE(directory.events("stop_requested").empty()) << "nothing is decided once the run is over";
  EXPECT_FALSE(run(RunDirectory(), 1, {"finish"}).is_stop_requested);
}

TEST(Watchdog, RestartsWhenAReplicaReportsAnException) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 2, {"throw@0:0", "wait_for_a_peer@1:0", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitFinished);
  EXPECT_THAT(directory.causes(), ElementsAre("thrown by the script"));
}

TEST(Watchdog, AcceptsReportsThatAreNotUtf8) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 1, {"throw_bytes@0:0", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitFinished);
  EXPECT_THAT(directory.causes(), ElementsAre(HasSubstr("not UTF-8: ")));
}

// Uses the limit that follows the step times: there a process that waits for a processor gets ten times as long. A
// short `hang_after` would end it.
TEST(Watchdog, NamesTheReplicaThatHangsAndNotItsPeersThatWait) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 2, {"pace", "compute@1:0", "hang@1:0", "wait_for_a_peer@0:0", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitFinished);
  ASSERT_EQ(directory.events("hang_detected").size(), 1U);
  EXPECT_EQ(directory.events("hang_detected")[0].at("rank"), 1);
  EXPECT_THAT(directory.causes(), ElementsAre(HasSubstr("in phase computing at step 7")));
}

TEST(Watchdog, NamesWhatHangsInTheBackgroundOfAReplicaThatTrains) {
  const RunDirectory directory;
  WatchdogOptions options = options_for(directory, 2, {"hang_in_the_background@1:0", "wait_for_a_peer@0:0", "finish"});
  options.recovery.hang_after = 500ms;

  const RunOutcome outcome = run_watchdog(options);

  EXPECT_EQ(outcome.exit_code, kExitFinished);
  EXPECT_EQ(directory.events("restart").at(0).at("rank"), 1);
  EXPECT_THAT(directory.causes(), ElementsAre(HasSubstr("fsync of a disk that is gone (1048576 bytes)")));
}

TEST(Watchdog, NamesAStoppedReplicaEvenWhenItWaitsForPeers) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 2, {"wait@0:0", "stop@0:0", "wait_for_a_peer@1:0", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitFinished);
  EXPECT_EQ(directory.events("restart").at(0).at("rank"), 0);
  EXPECT_THAT(directory.causes(), ElementsAre(HasSubstr("stopped by a signal")));
}

TEST(Watchdog, NamesTheReplicaWithTheLeastProgressWhenAllWaitForEachOther) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 2, {"pace", "wait", "hang@0:0", "hang@1:0", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitFinished);
  EXPECT_EQ(directory.events("restart").at(0).at("rank"), 0);
  EXPECT_THAT(directory.causes(), Contains(HasSubstr("all replicas wait for each other")));
}

TEST(Watchdog, GivesUpWhenWorkersNeverGetReady) {
  const RunDirectory directory;
  WatchdogOptions options = options_for(directory, 2, {"hang_before_join"});
  options.recovery.start_timeout = 300ms;
  options.recovery.max_restarts = 1;

  const RunOutcome outcome = run_watchdog(options);

  EXPECT_EQ(outcome.exit_code, kExitGaveUp);
  EXPECT_THAT(outcome.sentence, HasSubstr("in phase starting"));
}

TEST(Watchdog, GivesUpWithTheLastCauseWhenTheBudgetIsSpent) {
  const RunDirectory directory;
  WatchdogOptions options = options_for(directory, 2, {"exit_before_join"});
  // Fewer failures than those that would end the run without a budget.
  options.recovery.max_restarts = 1;

  const RunOutcome outcome = run_watchdog(options);

  EXPECT_EQ(outcome.exit_code, kExitGaveUp);
  EXPECT_THAT(outcome.sentence, HasSubstr("gave up after 1 restart"));
  EXPECT_THAT(outcome.sentence, HasSubstr("exited with code 4"));
  EXPECT_EQ(directory.causes().size(), 2U);
  EXPECT_FALSE(has_child());
}

TEST(Watchdog, EndsAtOnceWhenAFailureIsUnrecoverable) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 2, {"fail_for_good@1", "wait_for_a_peer"});

  EXPECT_EQ(outcome.exit_code, kExitUnrecoverable);
  EXPECT_EQ(outcome.sentence, "training ended: the option x differs from the run's (in replica 1)");
  EXPECT_THAT(directory.causes(), ElementsAre("the option x differs from the run's"));
}

TEST(Watchdog, TreatsALeaveWithoutAReportAsAFailure) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 1, {"leave@0:0", "exit3@0:1", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitFinished);
  EXPECT_THAT(directory.causes(), ElementsAre("exited with code 0 without having finished", "exited with code 3"));
}

TEST(Watchdog, SaysWhichExecutableCannotBeStarted) {
  const RunDirectory directory;
  WatchdogOptions options = options_for(directory, 2, {});
  options.executable = directory.path() + "/missing";
  options.recovery.max_restarts = 0;

  const RunOutcome outcome = run_watchdog(options);

  // A new process would fail in the same way.
  EXPECT_EQ(outcome.exit_code, kExitUnrecoverable);
  EXPECT_THAT(outcome.sentence, HasSubstr("cannot execute " + options.executable));
}

TEST(Watchdog, SharesArenasThatPeersCanWaitOn) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 4, {"arenas", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitFinished);
  EXPECT_THAT(directory.causes(), ElementsAre());
}

// A survivor sees its own memory and the other survivor's again, and a new process's for the first time.
TEST(Watchdog, ShowsTheMemoryOfSurvivorsAgain) {
  const RunDirectory directory;
  WatchdogOptions options =
      options_for(directory, 3, {"show", "kill@1:0", "wait_for_a_peer@0:0", "wait_for_a_peer@2:0", "finish"});
  options.recovery.when_lost = WhenLost::wait;

  const RunOutcome outcome = run_watchdog(options);

  EXPECT_EQ(outcome.exit_code, kExitFinished) << outcome.sentence;
  std::vector<int> again;
  for (const Json& line : directory.events("seen_again")) {
    if (line.at("generation") == 1) again.push_back(line.at("details").get<int>());
  }
  EXPECT_THAT(again, UnorderedElementsAre(0, 2, 2));
}

TEST(Watchdog, LetsNoReplicaWriteToItsPeersArena) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 2, {"write_to_a_peer@0:0", "wait_for_a_peer@1:0", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitFinished);
  EXPECT_THAT(directory.causes(), ElementsAre("killed by signal 11 (SIGSEGV)"));
}

TEST(Watchdog, RefusesArenasOfUnequalSizes) {
  const RunDirectory directory;

  const RunOutcome outcome = run(directory, 2, {"unequal_arenas", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitUnrecoverable);
  EXPECT_THAT(outcome.sentence, HasSubstr("rank 0: 4096, rank 1: 8192"));
}

TEST(Watchdog, FiresAFaultOnceInTheLifeOfARun) {
  const RunDirectory directory;
  WatchdogOptions options = options_for(directory, 2, {"train", "finish"});
  options.recovery.faults = {"rank=0,step=5,fault=throw", "rank=1,step=9,fault=kill", "rank=0,step=12,fault=exit"};

  const RunOutcome first = run_watchdog(options);
  const std::vector<std::string> causes = directory.causes();
  const RunOutcome second = run_watchdog(options);

  EXPECT_EQ(first.exit_code, kExitFinished);
  EXPECT_EQ(second.exit_code, kExitFinished);
  EXPECT_FALSE(causes.empty());
  EXPECT_EQ(directory.causes(), causes);
}

TEST(Watchdog, GivesWorkersTheRestartsOfAnEarlierWatchdog) {
  const RunDirectory directory;
  run(directory, 1, {"kill@0:0", "finish"});

  run(directory, 1, {"tell_restarts", "finish"});

  ASSERT_EQ(directory.events("told restart").size(), 1U);
  EXPECT_EQ(directory.events("told restart")[0].at("generation"), 2);
  EXPECT_EQ(directory.events("told restart")[0].at("details"), "generation 0: killed by signal 9 (SIGKILL)");
}

TEST(Watchdog, ContinuesARunWhosePastIsLongerThanAMessage) {
  const RunDirectory directory;
  const std::string cause(std::size_t{1} << 20, 'x');
  {
    std::ofstream past(directory.path() + "/journal.jsonl");
    for (int generation = 0; generation < 20; ++generation) {
      const Json restart = {
          {"generation", generation}, {"rank", 0}, {"cause", cause}, {"detected", 0.0}, {"step", generation}};
      past << Json{{"event", "restart"}, {"generation", generation}, {"restart", restart}} << "\n";
    }
  }

  const RunOutcome outcome = run(directory, 1, {"tell_restarts", "finish"});

  EXPECT_EQ(outcome.exit_code, kExitFinished);
  EXPECT_EQ(directory.events("told restart").size(), 20U);
}

TEST(Watchdog, RefusesOptionsThatCannotWork) {
  const RunDirectory directory;
  const auto code_of = [&](const std::function<void(WatchdogOptions&)>& spoil) {
    WatchdogOptions options = options_for(directory, 2, {"finish"});
    spoil(options);
    try {
      run_watchdog(options);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::unavailable;
  };

  EXPECT_EQ(code_of([](auto& options) { options.replicas = 0; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](auto& options) { options.replicas = kMaxReplicas + 1; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](auto& options) { options.command.clear(); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](auto& options) { options.recovery.hang_after = 0ms; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](auto& options) { options.recovery.place_rest = 0ms; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](auto& options) { options.worker_config = "\xff"; }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](auto& options) { options.recovery.faults = {"rank=2,step=1,fault=kill"}; }),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([](auto& options) { options.run_directory = "/dev/null/run"; }), ErrorCode::refused);
}

TEST(Watchdog, AsksReplicasToLeaveWhenItIsStopped) {
  const RunDirectory directory;
  Program program(directory, 2, {"until_stop"});
  ASSERT_TRUE(all_work(directory, 2));

  const int status = program.kill(SIGTERM);

  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kExitStopped);
  EXPECT_EQ(directory.events("left in order").size(), 2U);
}

TEST(Watchdog, KeepsIgnoringAHangupWhenItWasStartedSo) {
  const RunDirectory directory;
  const auto before = ::signal(SIGHUP, SIG_IGN);
  Program program(directory, 1, {"until_stop"});
  ::signal(SIGHUP, before);
  ASSERT_TRUE(all_work(directory, 1));

  program.signal(SIGHUP);
  const int status = program.kill(SIGTERM);

  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(directory.events("stop_requested").size(), 1U);
  EXPECT_EQ(directory.events("stop_requested")[0].at("signal"), SIGTERM);
}

TEST(Watchdog, KillsReplicasThatIgnoreTheFirstSignalAtTheSecond) {
  const RunDirectory directory;
  Program program(directory, 2, {"ignore_stop"});
  ASSERT_TRUE(all_work(directory, 2));

  program.signal(SIGINT);
  ASSERT_TRUE(comes_true([&] { return directory.events("stop_requested").size() == 1; }));
  const int status = program.kill(SIGINT);

  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kExitStopped);
}

TEST(Watchdog, LeavesNoOrphanWhenItIsKilled) {
  const RunDirectory directory;
  Program program(directory, 2, {"ignore_stop"});
  ASSERT_TRUE(all_work(directory, 2));
  const std::vector<FileDescriptor> workers = watch_processes(directory.events("working"));

  program.kill(SIGKILL);

  for (const FileDescriptor& worker : workers) EXPECT_TRUE(has_ended(worker));
}

TEST(Watchdog, KeepsASecondOneOutOfItsRunDirectory) {
  const RunDirectory directory;
  Program program(directory, 1, {"until_stop"});
  ASSERT_TRUE(all_work(directory, 1));
  std::string sentence;

  try {
    run(directory, 1, {"finish"});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::already_running);
    sentence = error.what();
  }

  EXPECT_THAT(sentence, HasSubstr(directory.path()));
  EXPECT_EQ(directory.events("watchdog_started").size(), 1U);
}

TEST(Watchdog, CanBeStartedAgainAtOnceAfterItWasKilled) {
  const RunDirectory directory;
  Program program(directory, 2, {"ignore_stop"});
  ASSERT_TRUE(all_work(directory, 2));
  program.kill(SIGKILL);

  const RunOutcome outcome = run(directory, 2, {"finish"});

  EXPECT_EQ(outcome.exit_code, kExitFinished);
}

TEST(Watchdog, ContinuesAfterAFaultThatKilledIt) {
  const RunDirectory directory;
  const std::vector<std::string> script{"fault=rank=1,step=5,fault=kill-watchdog", "train", "until_stop@0", "finish"};
  Program program(directory, 2, script);

  const int status = program.wait();
  WatchdogOptions options = options_for(directory, 2, {"train", "finish"});
  options.recovery.faults = {"rank=1,step=5,fault=kill-watchdog"};
  const RunOutcome outcome = run_watchdog(options);

  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(outcome.exit_code, kExitFinished);
}

}  // namespace
}  // namespace holdfast::recovery
