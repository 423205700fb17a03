// Training alone, for a debugger: the training function runs in the first process, and the run is not changed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "integration/begun_run.h"
#include "support/comes_true.h"
#include "support/count_of.h"

namespace holdfast {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

class Alone : public BegunRun {
 protected:
  static constexpr const char* kAlone = "HOLDFAST_ALONE=1";

  // Trains up to a step, and waits there until the test releases it.
  RunningProgram hold(const Words& variables) const {
    return RunningProgram("/usr/bin/env",
                          arguments_of_env(variables, command({"--at", "20", "--hold", folder_.path()})));
  }
  void wait_until_held() const {
    ASSERT_TRUE(comes_true([this] { return exists("held"); }));
  }
  void release() const { std::ofstream(folder_ / "released").close(); }
};

}  // namespace

TEST_F(Alone, TrainsInTheFirstProcessWithTheBitsOfReplicas) {
  for (const auto& [options, variables] : {std::pair(Words{}, Words{kAlone}), {Words{"--alone", "true"}, Words{}}}) {
    RunningProgram program("/usr/bin/env", arguments_of_env(variables, command(options)));
    const ProgramResult result = program.wait();

    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(count_of("trains in process", result.output), 1U) << result.output;
    EXPECT_THAT(result.output, HasSubstr("trains in process " + std::to_string(program.pid()) + "\n"));
    EXPECT_EQ(weights_in(result), expected_weights());
  }
}

TEST_F(Alone, CreatesNoRunDirectory) {
  ASSERT_EQ(start({}, {kAlone}).exit_code, 0);

  EXPECT_EQ(folder_.names(), Words{});
}

TEST_F(Alone, ObeysTheOptionBeforeTheVariable) {
  const ProgramResult result = start({"--alone", "false"}, {kAlone});

  EXPECT_EQ(count_of("trains in process", result.output), 2U) << result.output;
}

TEST_F(Alone, RefusesAnInvalidValueOfTheVariable) {
  const ProgramResult result = start({}, {"HOLDFAST_ALONE=yes"});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("the environment has HOLDFAST_ALONE=yes, where 1 or 0 is expected"));
}

TEST_F(Alone, GoesOnFromTheNewestStateAndLeavesTheRunAsItIs) {
  ASSERT_EQ(start({"--at", "20", "--fail"}).exit_code, 1);
  const auto run = files_of(run_);
  const auto copies = file_digests(copies_);

  const ProgramResult result = start({}, {kAlone});

  EXPECT_EQ(result.exit_code, 0) << result.output;
  // The failed run left this savepoint just before its failure.
  EXPECT_THAT(result.output, ContainsRegex("continuing from " + run_ + "/savepoint-00000000(19|20).h5"));
  EXPECT_EQ(weights_in(result), expected_weights());
  EXPECT_EQ(files_of(run_), run);
  EXPECT_EQ(file_digests(copies_), copies);
  EXPECT_EQ(folder_.names(), (Words{"copies", "run"}));

  EXPECT_EQ(weights_in(start()), expected_weights());
}

TEST_F(Alone, FailsAsTheRunDid) {
  ASSERT_EQ(start({"--at", "20", "--fail"}).exit_code, 1);
  const auto run = files_of(run_);

  const ProgramResult result = start({"--at", "20", "--fail"}, {kAlone});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, ContainsRegex("error the points are not those of a line\n$"));
  EXPECT_EQ(files_of(run_), run);
}

TEST_F(Alone, PrintsTheResultsOfAFinishedRunAndLeavesItAsItIs) {
  ASSERT_EQ(start().exit_code, 0);
  const auto run = files_of(run_);

  const ProgramResult result = start({}, {kAlone});

  EXPECT_THAT(result.output, HasSubstr("had finished at step 36"));
  EXPECT_EQ(weights_in(result), expected_weights());
  EXPECT_EQ(files_of(run_), run);
}

TEST_F(Alone, SetsNoRunAside) {
  fail_early();
  const auto run = files_of(run_);

  const ProgramResult result = start({"--seed", "2"}, {kAlone});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("the run was started with seed 1"));
  EXPECT_EQ(files_of(run_), run);
  EXPECT_FALSE(exists("run.1"));
}

// The variable was ignored silently.
TEST_F(Alone, SaysThatAFreshStartHasNoEffect) {
  ASSERT_EQ(start({"--at", "20", "--fail"}).exit_code, 1);
  const auto run = files_of(run_);

  const ProgramResult result = start({}, {kAlone, "HOLDFAST_START=fresh"});

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("HOLDFAST_START=fresh has no effect on training alone"));
  EXPECT_THAT(result.output, HasSubstr("continuing from " + run_ + "/savepoint-"));
  EXPECT_EQ(files_of(run_), run);
}

TEST_F(Alone, OwnsTheRunDirectoryWhileItTrains) {
  fail_early();
  RunningProgram alone = hold({kAlone});
  wait_until_held();

  for (const Words& variables : {Words{}, Words{kAlone}}) {
    const ProgramResult second = start({}, variables);
    EXPECT_EQ(second.exit_code, 1);
    EXPECT_THAT(second.output, HasSubstr("process " + std::to_string(alone.pid()))) << second.output;
  }

  release();
  const ProgramResult result = alone.wait();
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(weights_in(result), expected_weights());
}

TEST_F(Alone, IsRefusedWhileTheRunIsLive) {
  RunningProgram run = hold({});
  wait_until_held();

  const ProgramResult alone = start({}, {kAlone});

  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_EQ(count_of("trains in process", alone.output), 0U) << alone.output;
  release();
  EXPECT_EQ(weights_in(run.wait()), expected_weights());
}

}  // namespace holdfast
