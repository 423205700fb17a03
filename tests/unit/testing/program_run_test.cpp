// run_program() with lines of the shell as programs, so that each end of a program can be made at will.

#include "holdfast/testing/program_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "holdfast/base/error.h"
#include "process_table.h"
#include "support/program.h"
#include "support/temporary_folder.h"

namespace holdfast::resilience {
namespace {

using std::chrono::seconds;

// A program that runs this line of the shell.
Program shell(const std::string& line) {
  return {.command = {"/bin/sh", "-c", "mkdir -p {run_dir}; " + line}};
}

std::string write_line(const std::string& json) {
  return "echo '" + json + "' >> {run_dir}/journal.jsonl; ";
}

TEST(ProgramRun, ReadsTheJournal) {
  const std::string lines =
      write_line(R"({"event":"watchdog_started","pid":7,"replicas":3})") +
      write_line(
          R"({"event":"restart","restart":{"cause":"SIGKILL","detected":1.5,"generation":0,"rank":2,"step":9}})") +
      write_line(
          R"({"event":"ready","actions":[{"action":"set_timer","seconds":0.5},{"action":"open_generation","generation":4,"members":[0,12,3]}]})") +
      write_line(R"({"event":"corruption_injected","generation":4,"rank":1,"details":{"step":9,"what":"bit 3"}})") +
      write_line(R"({"event":"corruption_injected","details":{"what":"bit 3"}})") +
      write_line(R"({"event":"rolled_back","details":{"step":8}})") +
      write_line(R"({"event":"savepoint","details":{"path":"run/savepoint-0000000020.h5","step":20}})") +
      write_line(R"({"event":"savepoint","details":{"path":"run/savepoint-0000000008.h5","step":8}})") +
      write_line(R"({"event":"savepoint","details":{"path":"copy/savepoint-0000000020.h5","step":20}})") +
      write_line(R"({"event":"savepoint","details":{"path":"run/best.h5","step":9}})") +
      write_line(R"({"event":"fit_finished","details":{"step":20,"weights_digest":"old"}})") +
      write_line(R"({"event":"fit_finished","details":{"step":27,"weights_digest":"new"}})") + write_line("{torn") +
      write_line(
          R"({"event":"exited","actions":[{"action":"finish","exit_code":0,"sentence":"finished: all of it"}]})") +
      "mkdir {run_dir}/faults; touch {run_dir}/faults/0-aa.fired {run_dir}/faults/1-bb.fired";

  const RunResult run = run_program(shell(lines), {});

  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(run.replicas, 3);
  EXPECT_EQ(run.last_fit, (FinishedFit{.step = 27, .weights_digest = "new"}));
  ASSERT_EQ(run.lost.size(), 1U);
  EXPECT_EQ(run.lost[0].rank, 2);
  EXPECT_EQ(run.lost[0].step, 9);
  ASSERT_EQ(run.corruptions.size(), 1U) << "the other does not say where";
  EXPECT_EQ(run.corruptions[0].rank, 1);
  EXPECT_EQ(run.corruptions[0].step, 9);
  EXPECT_EQ(run.corruptions[0].replicas, 3);
  EXPECT_EQ(run.roll_backs, 1);
  EXPECT_EQ(run.savepoint_steps, (std::vector<std::int64_t>{8, 20}));
  EXPECT_EQ(run.faults_struck, 2);
  EXPECT_EQ(run.sentence, "finished: all of it");
}

TEST(ProgramRun, HasTheLastLineOfAProgramThatWroteNoJournal) {
  const RunResult run = run_program(shell("echo first; echo the last word; echo; exit 3"), {});

  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.sentence, "the last word");
  EXPECT_EQ(run.replicas, 0);
  EXPECT_EQ(run.last_fit, std::nullopt);
}

TEST(ProgramRun, PassesFaultsReplicasAndAFreshRunDirectory) {
  Program program = shell("echo $HOLDFAST_FAULTS {replicas}; ls -A {run_dir}");
  program.replicas = 4;

  const RunResult run = run_program(program, {.faults = {"rank=1,step=2,fault=kill", "rank=0,step=3,fault=hang"}});

  EXPECT_EQ(run.output, "rank=1,step=2,fault=kill;rank=0,step=3,fault=hang 4\n");
}

TEST(ProgramRun, RemovesFaultsOfItsOwnEnvironment) {
  ::setenv("HOLDFAST_FAULTS", "rank=0,step=0,fault=kill", 1);
  const RunResult run = run_program(shell("echo \"faults: $HOLDFAST_FAULTS\""), {});
  ::unsetenv("HOLDFAST_FAULTS");

  EXPECT_EQ(run.output, "faults: \n");
}

TEST(ProgramRun, KillsAllProcessesOfAProgramAtTheTimeLimit) {
  const TemporaryFolder folder;

  const RunResult run = run_program(shell("sleep 1000 & echo $! > {run_dir}/pid; wait"),
                                    {.time_limit = std::chrono::milliseconds(500), .run_directory = folder / "run"});

  EXPECT_TRUE(run.is_out_of_time);
  EXPECT_EQ(run.exit_code, 128 + SIGKILL);
  EXPECT_LT(run.wall_time, seconds(100));
}

TEST(ProgramRun, FindsAndKillsProcessesThatLiveOn) {
  const RunResult run =
      run_program(shell("sleep 1000 >/dev/null 2>&1 & exit 0"), {.leave_time = std::chrono::milliseconds(100)});

  EXPECT_EQ(run.exit_code, 0);
  ASSERT_EQ(run.processes_left.size(), 1U);
  const auto entry = process_entry(run.processes_left[0]);
  EXPECT_TRUE(!entry || entry->is_zombie()) << "it lives on";
}

TEST(ProgramRun, StartsAProgramAgainWhoseWatchdogWasKilled) {
  const std::string line = "test -e {run_dir}/again && exit 0; touch {run_dir}/again; kill -9 $$";

  EXPECT_EQ(run_program(shell(line), {.faults = {"rank=0,step=3,fault=kill-watchdog"}}).starts, 2);
  const RunResult once = run_program(shell(line), {.faults = {"rank=0,step=3,fault=kill"}});
  EXPECT_EQ(once.starts, 1);
  EXPECT_EQ(once.exit_code, 128 + SIGKILL);
}

Program shell_on_two_hosts(const std::string& line) {
  Program program = shell(line);
  program.hosts = 2;
  return program;
}

TEST(ProgramRun, StartsAProgramOnEachHost) {
  const TemporaryFolder folder;

  const RunResult run =
      run_program(shell_on_two_hosts("echo $HOLDFAST_NNODES $HOLDFAST_HEAD {replicas} "
                                     "`wc -c < $HOLDFAST_SECRET_FILE` > {run_dir}/$HOLDFAST_NODE_RANK"),
                  {.run_directory = folder / "run"});

  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(run.starts, 1);
  const std::string of_first = read_file(folder / "run/0");
  EXPECT_THAT(of_first, ::testing::MatchesRegex("2 127.0.0.1:[0-9]+ 2 32\n"));
  EXPECT_EQ(read_file(folder / "run/1"), of_first);
}

TEST(ProgramRun, HasTheExitCodeOfAHostThatFailed) {
  EXPECT_EQ(run_program(shell_on_two_hosts("exit $((3 * $HOLDFAST_NODE_RANK))"), {}).exit_code, 3);
  EXPECT_EQ(run_program(shell_on_two_hosts("exit $((7 - $HOLDFAST_NODE_RANK))"), {}).exit_code, 7);
}

// The first host goes on until the second one is back, which comes too late to hear of the end.
TEST(ProgramRun, StartsAHostAgainWhoseWatchdogWasKilled) {
  const RunResult run = run_program(
      shell_on_two_hosts(
          "if [ $HOLDFAST_NODE_RANK = 0 ]; then until test -e {run_dir}/back; do sleep 0.01; done; exit 0; fi; "
          "test -e {run_dir}/again || { touch {run_dir}/again; kill -9 $$; }; touch {run_dir}/back; "
          "exec sleep 1000"),
      {.faults = {"rank=1,step=3,fault=kill-watchdog"}, .leave_time = std::chrono::milliseconds(100)});

  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(run.starts, 2);
  EXPECT_FALSE(run.is_out_of_time);
}

// The others wait for it as long as they would for one that starts late.
TEST(ProgramRun, SaysWhyTheFirstHostFailed) {
  const RunResult run =
      run_program(shell_on_two_hosts("[ $HOLDFAST_NODE_RANK = 0 ] || exec sleep 1000; echo the port is taken; exit 3"),
                  {.leave_time = std::chrono::milliseconds(100)});

  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.sentence, "the port is taken");
  EXPECT_FALSE(run.is_out_of_time);
}

TEST(ProgramRun, KillsAHostThatDoesNotEndWithTheFirst) {
  const RunResult run = run_program(shell_on_two_hosts("[ $HOLDFAST_NODE_RANK = 0 ] || exec sleep 1000"),
                                    {.leave_time = std::chrono::milliseconds(100)});

  EXPECT_TRUE(run.is_out_of_time);
}

TEST(ProgramRun, DeletesATemporaryRunDirectoryAndKeepsANamedOne) {
  const TemporaryFolder folder;

  const RunResult temporary = run_program(shell("echo {run_dir}"), {});
  run_program(shell("touch {run_dir}/trace"), {.run_directory = folder / "kept"});

  const std::string path = temporary.sentence;
  EXPECT_FALSE(path.empty());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(folder / "kept/trace"));
}

TEST(ProgramRun, RefusesAProgramThatItCannotRun) {
  const TemporaryFolder folder;
  const auto code_of = [](const Program& program, const RunOptions& options) {
    try {
      run_program(program, options);
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "it ran";
    return ErrorCode::cancelled;
  };

  EXPECT_EQ(code_of({.command = {"/nowhere/at/all", "{run_dir}"}}, {}), ErrorCode::not_found);
  EXPECT_EQ(code_of({.command = {"/bin/true"}}, {}), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of({}, {}), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(shell("true"), {.run_directory = folder.path()}), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace holdfast::resilience
