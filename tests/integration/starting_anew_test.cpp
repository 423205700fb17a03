// What happens to the run in a directory when a program starts there: docs/operations.md#starting-anew.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "integration/begun_run.h"
#include "support/count_of.h"

namespace holdfast {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class StartingAnew : public BegunRun {
 protected:
  static constexpr const char* kFresh = "HOLDFAST_START=fresh";

  void finish_a_run() const {
    const ProgramResult result = start();
    ASSERT_EQ(result.exit_code, 0) << result.output;
  }
  void expect_nothing_put_aside() const { EXPECT_EQ(folder_.names(), (Words{"copies", "run"})); }

  // Runs the command while `folder` is a mount point, which cannot be renamed. Exit code 99: a mount is impossible
  // here.
  static ProgramResult run_with_mount(const std::string& folder, const Words& variables, const Words& command) {
    Words all{"unshare", "--mount"};
    if (::geteuid() != 0) all.push_back("--map-root-user");
    const std::string mount = "mount --bind '" + folder + "' '" + folder + "' || exit 99; exec \"$@\"";
    all.insert(all.end(), {"sh", "-c", mount, "sh"});
    all.insert(all.end(), command.begin(), command.end());
    return run_with(variables, all);
  }
};

// A start that leaves a run which must not be replaced, and the next start, which is refused.
struct NotToGiveWay {
  const char* why;
  std::vector<std::string> first;
  int exit_code;
  std::vector<std::string> next{};
};

const NotToGiveWay kNotToGiveWay[] = {
    {"stopped", {"--at", "3", "--stop", "--epochs", "1000000"}, 75, {"--epochs", "1000000"}},
    {"its watchdog was killed", {"--inject", "rank=0,step=3,fault=kill-watchdog"}, 128 + 9},
    {"a replica was killed", {"--inject", "rank=0,step=3,fault=kill", "--max-restarts", "0"}, 70},
    {"failed after its first epoch", {"--at", "14", "--fail"}, 1},
};

}  // namespace

// --- a first try that failed

TEST_F(StartingAnew, AFirstTryGivesWayToAProgramWithOtherOptions) {
  for (const char* step : {"0", "3"}) {
    SCOPED_TRACE(step);
    const TemporaryFolder other;
    const std::string run = other / "run";
    const auto start_there = [&](Words options) {
      options.insert(options.begin(), {built_program("begun_program"), "--run-dir", run});
      return run_with({}, options);
    };
    ASSERT_EQ(start_there({"--at", step, "--fail"}).exit_code, 1);
    const auto before = files_of(run);

    const ProgramResult result = start_there({"--seed", "2"});

    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(weights_in(result), expected_weights({"--seed", "2"}));
    EXPECT_EQ(files_of(run + ".1"), before);
    EXPECT_THAT(result.output, HasSubstr(" warning the earlier run in " + run +
                                         " had failed before it had any result; it is kept as " + run +
                                         ".1, and a new one starts, since the program has changed: the run was started "
                                         "with seed 1"));
    EXPECT_EQ(log_lines_in(result), 1U) << result.output;
  }
}

// Replicas notice this, not the watchdog, which then ends them and begins again.
TEST_F(StartingAnew, AFirstTryGivesWayToAProgramWithOtherData) {
  fail_early();

  const ProgramResult result = start({"--batch", "8"});

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(weights_in(result), expected_weights({"--batch", "8"}));
  EXPECT_TRUE(exists("run.1/savepoint-0000000002.h5") || exists("run.1/savepoint-0000000003.h5"));
  EXPECT_THAT(result.output, HasSubstr("it is kept as " + run_ +
                                       ".1, and a new one starts, since the program has "
                                       "changed: the run cannot go on"));
  EXPECT_EQ(count_of(" warning ", result.output), 1U) << result.output;
  EXPECT_EQ(count_of(" error ", result.output), 0U) << result.output;
}

TEST_F(StartingAnew, AFirstTryContinuesWhenNothingHasChanged) {
  fail_early();

  const ProgramResult result = start();

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("continuing from " + run_ + "/savepoint-"));
  EXPECT_EQ(weights_in(result), expected_weights());
  expect_nothing_put_aside();
}

// A killed replica was counted as one that the watchdog had killed, and its run was replaced.
TEST_F(StartingAnew, ARunThatWasStoppedOrKilledOrHasResultsIsRefused) {
  for (const NotToGiveWay& earlier : kNotToGiveWay) {
    SCOPED_TRACE(earlier.why);
    const TemporaryFolder other;
    const std::string run = other / "run";
    const auto start_there = [&](Words options) {
      options.insert(options.begin(), {built_program("begun_program"), "--run-dir", run});
      return run_with({}, options);
    };
    const ProgramResult first = start_there(earlier.first);
    ASSERT_EQ(first.exit_code, earlier.exit_code) << first.output;
    const auto before = files_of(run);
    Words changed = earlier.next;
    changed.insert(changed.end(), {"--seed", "2"});

    const ProgramResult result = start_there(changed);

    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.output, ContainsRegex("error the run was started with seed 1 .*start anew with "
                                             "HOLDFAST_START=fresh .*or give another run directory\n$"));
    EXPECT_EQ(files_of(run), before);
    EXPECT_EQ(other.names(), Words{"run"});
  }
}

TEST_F(StartingAnew, ARunThatWasStoppedIsRefusedByAProgramWithOtherData) {
  const Words epochs{"--epochs", "1000000"};
  ASSERT_EQ(start({"--at", "3", "--stop", epochs[0], epochs[1]}).exit_code, 75);

  const ProgramResult result = start({"--batch", "8", epochs[0], epochs[1]});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, ContainsRegex("data/batch was 4 and is 8. Use the earlier options, or start anew with "
                                           "HOLDFAST_START=fresh "));
  expect_nothing_put_aside();
}

// --- a fresh start

TEST_F(StartingAnew, KeepsTheRunAndItsCopiesAndSaysSo) {
  finish_a_run();
  for (const std::string& number : {std::string(".1"), std::string(".2")}) {
    const auto run = files_of(run_);
    const auto copies = file_digests(copies_);
    const std::string seed = number == ".1" ? "2" : "3";

    const ProgramResult result = start({"--seed", seed}, {kFresh});

    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(weights_in(result), expected_weights({"--seed", seed}));
    EXPECT_EQ(files_of(run_ + number), run);
    EXPECT_EQ(file_digests(copies_ + number), copies);
    EXPECT_THAT(result.output, HasSubstr(" info HOLDFAST_START=fresh: the earlier run in " + run_ + " is kept as " +
                                         run_ + number + ", and a new one starts\n"));
    EXPECT_EQ(log_lines_in(result), 1U) << result.output;
  }
  EXPECT_EQ(folder_.names(), (Words{"copies", "copies.1", "copies.2", "run", "run.1", "run.2"}));
}

TEST_F(StartingAnew, SaysWhatTheVariableDidWithoutARunAndWhenTheRunContinues) {
  EXPECT_THAT(start({}, {kFresh}).output, HasSubstr("HOLDFAST_START=fresh: " + run_ + " holds no earlier run"));

  const ProgramResult result = start({}, {"HOLDFAST_START=resume"});

  EXPECT_THAT(result.output, HasSubstr("HOLDFAST_START=resume: goes on with the run in " + run_));
  expect_nothing_put_aside();
}

TEST_F(StartingAnew, ObeysTheOptionBeforeTheVariable) {
  finish_a_run();

  const ProgramResult resumed = start({"--start", "resume"}, {kFresh});
  EXPECT_THAT(resumed.output, HasSubstr("the options: goes on with the run in " + run_));
  EXPECT_THAT(resumed.output, HasSubstr("had finished at step 36"));
  expect_nothing_put_aside();

  const ProgramResult anew = start({"--start", "fresh"}, {"HOLDFAST_START=resume"});
  EXPECT_THAT(anew.output, HasSubstr("the options: the earlier run in " + run_ + " is kept as " + run_ + ".1"));
  EXPECT_THAT(anew.output, Not(HasSubstr("had finished")));
}

TEST_F(StartingAnew, RefusesAnInvalidValueOfTheVariable) {
  finish_a_run();
  const auto run = files_of(run_);

  const ProgramResult result = start({}, {"HOLDFAST_START=anew"});

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("where resume, fresh or fresh:TOKEN is expected"));
  EXPECT_EQ(files_of(run_), run);
  expect_nothing_put_aside();
}

TEST_F(StartingAnew, ChangesNothingWhenAFolderCannotBeRenamed) {
  finish_a_run();
  const ProgramResult probe = run_with_mount(run_, {}, {"true"});
  if (probe.exit_code != 0) GTEST_SKIP() << "no mount point can be made here: " << probe.output;
  const auto run = files_of(run_);
  const auto copies = file_digests(copies_);

  for (const std::string& fixed : {run_, copies_}) {
    const ProgramResult result = run_with_mount(fixed, {kFresh}, command({}));

    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.output, HasSubstr(" error the earlier run in " + run_ +
                                         " cannot be put aside to start anew: " + fixed + " cannot be renamed: "));
    EXPECT_THAT(result.output, HasSubstr("move it away yourself, or give another run directory"));
    EXPECT_EQ(files_of(run_), run);
    EXPECT_EQ(file_digests(copies_), copies);
    expect_nothing_put_aside();
  }
}

// --- processes that start again, but not anew

TEST_F(StartingAnew, ProcessesThatTheWatchdogRestartsContinue) {
  for (const char* replicas : {"2", "1"}) {
    SCOPED_TRACE(replicas);
    const TemporaryFolder other;
    const std::string run = other / "run";
    const std::string copies = other / "copies";
    const Words all{built_program("begun_program"), "--run-dir", run, "--copies", copies, "--replicas", replicas};
    ASSERT_EQ(run_with({}, all).exit_code, 0);
    Words killed = all;
    killed.insert(killed.end(), {"--inject", "rank=0,step=20,fault=kill"});

    const ProgramResult result = run_with({kFresh}, killed);

    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_EQ(weights_in(result), expected_weights());
    EXPECT_THAT(read_file(run + "/journal.jsonl"), HasSubstr("\"restart\""));
    EXPECT_EQ(count_of("a new one starts", result.output), 1U) << result.output;
    EXPECT_EQ(other.names(), (Words{"copies", "copies.1", "run", "run.1"}));
  }
}

TEST_F(StartingAnew, UnderHoldfastRunContinuesAfterADeath) {
  finish_a_run();
  const auto run = files_of(run_);
  const auto copies = file_digests(copies_);
  Words all{built_program("holdfast"),   "run",     "--run-dir", run_, "--replicas", "1", "--inject",
            "rank=0,step=20,fault=kill", "--fresh", "--"};
  const Words program = command({"--seed", "2"});
  all.insert(all.end(), program.begin(), program.end());

  const ProgramResult result = run_with({}, all);

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(weights_in(result), expected_weights({"--seed", "2"}));
  EXPECT_THAT(result.output, HasSubstr("the options: the earlier run in " + run_ + " is kept as " + run_ + ".1"));
  EXPECT_THAT(result.output, HasSubstr("copies of the earlier run's savepoints are kept as " + copies_ + ".1"));
  EXPECT_THAT(read_file(run_ + "/journal.jsonl"), HasSubstr("\"restart\""));
  EXPECT_EQ(files_of(run_ + ".1"), run);
  EXPECT_EQ(file_digests(copies_ + ".1"), copies);
  EXPECT_EQ(folder_.names(), (Words{"copies", "copies.1", "run", "run.1"}));
}

TEST_F(StartingAnew, AStartWithTheSameTokenContinues) {
  finish_a_run();
  ASSERT_EQ(start({"--at", "20", "--fail"}, {"HOLDFAST_START=fresh:monday"}).exit_code, 1);
  ASSERT_TRUE(exists("run.1"));

  const ProgramResult again = start({}, {"HOLDFAST_START=fresh:monday"});

  EXPECT_THAT(again.output, HasSubstr("HOLDFAST_START=fresh:monday: the run in " + run_ +
                                      " was begun anew by the same token monday, so it goes on"));
  EXPECT_THAT(again.output, HasSubstr("continuing from " + run_ + "/savepoint-"));
  EXPECT_EQ(weights_in(again), expected_weights());
  EXPECT_EQ(folder_.names(), (Words{"copies", "copies.1", "run", "run.1"}));

  EXPECT_THAT(start({}, {"HOLDFAST_START=fresh:tuesday"}).output, HasSubstr("is kept as " + run_ + ".2"));
}

}  // namespace holdfast
