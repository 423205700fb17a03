// What programs of the SDK pass to the replicas that they start.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "resilience/digits_run.h"
#include "support/comes_true.h"
#include "support/count_of.h"
#include "support/sanitizer.h"

namespace holdfast {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// The process ids of the replicas, by the rank that they were started as: for the first processes, their number.
std::map<int, int> replica_pids(const TemporaryFolder& folder) {
  std::map<int, int> pids;
  for (const nlohmann::json& line : journal_of(folder)) {
    if (line.at("event") == "ready") pids[line.at("member").get<int>()] = line.at("pid").get<int>();
  }
  return pids;
}

// What a run leaves whose training function never gets to a Trainer.
struct FailedRun {
  explicit FailedRun(const std::string& way, const std::string& log_level = "info")
      : result(run_program(built_program("failing_program"), {way, folder / "run", log_level})) {}
  // Selects a program whose replicas do not do the same.
  struct OfCalls {
    std::string way;
  };
  explicit FailedRun(const OfCalls& calls)
      : result(run_program(built_program("calls_program"), {calls.way, folder / "run"})) {}

  std::size_t starts() const {
    std::size_t count = 0;
    for (const nlohmann::json& line : journal_of(folder)) {
      for (const nlohmann::json& action : line.value("actions", nlohmann::json::array())) {
        count += action.at("action") == "start_process" ? 1 : 0;
      }
    }
    return count;
  }

  const TemporaryFolder folder;
  const ProgramResult result;
};

}  // namespace

// The sentence came after twenty restarts and seventy seconds.
TEST(Supervise, EndsARunAtOnceWhoseTrainingFunctionUsesNoTrainer) {
  const FailedRun run("returns");

  EXPECT_EQ(run.result.exit_code, 1);
  EXPECT_THAT(run.result.output, HasSubstr("returned without a call of fit(), evaluate() or predict()"));
  EXPECT_EQ(run.starts(), 2U);
}

TEST(Supervise, EndsARunThatFailsInTheSameWayAtEachStart) {
  const FailedRun run("throws");

  EXPECT_EQ(run.result.exit_code, 70);
  EXPECT_THAT(run.result.output, ContainsRegex("error training ended: cannot open my own data.bin \\(thrown by the "
                                               "training function in both replicas, (twice|[a-z0-9]+ times)\\)\n$"));
  EXPECT_LE(run.starts(), 7U);
}

// The error was "died without a report", although the kernel knew more.
TEST(Supervise, NamesTheSignalThatEndedARunAndThoseOfItsStarts) {
  const FailedRun run("crashes");

  EXPECT_EQ(run.result.exit_code, 70);
  EXPECT_THAT(run.result.output, ContainsRegex("error training ended: both replicas were killed by signal 11 "
                                               "\\(SIGSEGV\\) \\((twice|[a-z0-9]+ times)\\)\n$"));
  EXPECT_LE(run.starts(), 7U);
}

TEST(Supervise, NamesTheExitCodeThatEndedARun) {
  const FailedRun run("exits");

  EXPECT_EQ(run.result.exit_code, 70);
  EXPECT_THAT(run.result.output,
              ContainsRegex("error training ended: both replicas exited with code 3 \\((twice|[a-z0-9]+ times)\\)\n$"));
}

// They trained together, on sums over samples that some replicas did not have.
TEST(Supervise, EndsARunAtOnceWhoseReplicasTakeOtherData) {
  const FailedRun run(FailedRun::OfCalls{"divided_data"});

  EXPECT_EQ(run.result.exit_code, 1) << run.result.output;
  EXPECT_THAT(run.result.output, HasSubstr("replica 1 runs call 1 of the Trainer with other choices than replica 0"));
  EXPECT_THAT(run.result.output, HasSubstr("the program must not divide the data by rank"));
  EXPECT_EQ(run.starts(), 2U);
}

// Their memory for gradients differs, which the watchdog sees before they meet.
TEST(Supervise, EndsARunAtOnceWhoseReplicasHaveModelsOfOtherSizes) {
  const FailedRun run(FailedRun::OfCalls{"other_model"});

  EXPECT_EQ(run.result.exit_code, 1) << run.result.output;
  EXPECT_THAT(run.result.output, HasSubstr("replicas show memory of different sizes, as those of different models do"));
  EXPECT_EQ(run.starts(), 2U);
}

// The cause was printed three times, among 10 to 17 lines of the watchdog's decisions.
TEST(Supervise, PrintsTheCauseOfTheEndOnceAndNothingElse) {
  for (const auto& [way, sentence] : {std::pair{"returns", "returned without a call of fit()"},
                                      {"throws", "cannot open my own data.bin"},
                                      {"runs out of memory", "take a smaller batch or fewer replicas"},
                                      {"exits", "exited with code 3"}}) {
    const FailedRun run(way);

    EXPECT_EQ(count_of(sentence, run.result.output), 1U) << run.result.output;
    EXPECT_EQ(count_of("watchdog: ", run.result.output), 0U) << run.result.output;
    EXPECT_EQ(count_of(" warning ", run.result.output), 0U) << run.result.output;
  }
}

TEST(Supervise, LogsEveryDecisionOfTheWatchdogOnRequest) {
  const FailedRun run("throws", "debug");

  EXPECT_THAT(run.result.output, ContainsRegex("debug watchdog: the run starts with 2 replicas"));
  EXPECT_THAT(run.result.output, ContainsRegex("debug watchdog: process [0-9]+: cannot open my own data.bin; restart"));
}

TEST(Supervise, LogsTheDeathOfAReplicaInOneLine) {
  const TemporaryFolder folder;

  const ProgramResult result =
      run_program(built_program("digits"), digits_arguments({.replicas = 3, .faults = {kill_of(1, 12)}}, folder));

  ASSERT_EQ(result.exit_code, 0) << result.output;
  // The watchdog looks ten times a second, so it may see the end of a short run before it sees the next step.
  EXPECT_THAT(result.output,
              ContainsRegex("warning replica 1 was killed by signal 9 \\(SIGKILL\\) in step 12; "
                            "(training went on with the other 2 replicas at step|the run has finished)"));
  EXPECT_EQ(count_of(" warning ", result.output), 1U) << result.output;
  EXPECT_EQ(count_of("watchdog: ", result.output), 0U) << result.output;
}

// A debugger of the program shows only the watchdog, and three silent restarts explain nothing.
TEST(Supervise, ShowsWhereAReplicaCrashed) {
  const std::map<std::string, std::pair<int, std::string>> crashes{{"writes", {11, "crash_at_a_wrong_address("}},
                                                                   {"recurses", {11, "crash_by_recursion("}},
                                                                   {"aborts", {6, "crash_by_abort()"}}};
  for (const auto& [way, crash] : crashes) {
    const auto& [signal, function] = crash;
    const FailedRun run(way);

    EXPECT_EQ(run.result.exit_code, 70);
    EXPECT_THAT(run.result.output,
                ContainsRegex("error training ended: both replicas were killed by signal " + std::to_string(signal)));
    if (runs_under_a_sanitizer()) continue;
    EXPECT_THAT(run.result.output, HasSubstr("#0 "));
    EXPECT_THAT(run.result.output, HasSubstr(function));
    std::size_t crashed = 0;
    for (const nlohmann::json& line : journal_of(run.folder)) {
      if (line.at("event") != "crashed") continue;
      ++crashed;
      EXPECT_EQ(line.at("signal"), signal);
      EXPECT_THAT(line.at("frames").dump(), HasSubstr(function));
    }
    EXPECT_GE(crashed, 3U);
    const ProgramResult told = run_program(built_program("holdfast"), {"report", run.folder / "run"});
    EXPECT_THAT(told.output, ContainsRegex("in: #0 "));
    EXPECT_THAT(told.output, HasSubstr(function));
  }
}

// All of twenty restarts failed in the same way.
TEST(Supervise, SkipsAFolderWithTheNameOfTheNewestSavepoint) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_program(built_program("digits"), digits_arguments({}, folder)).exit_code, 0);
  const std::string newest = folder / "run/savepoint-0000000099.h5";
  std::filesystem::create_directory(newest);

  const ProgramResult result = run_program(built_program("digits"), digits_arguments({}, folder));

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr(newest));
}

TEST(Supervise, EndsAtOnceWhenTheNewestSavepointMayNotBeRead) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_program(built_program("digits"), digits_arguments({}, folder)).exit_code, 0);
  const std::string newest = folder / "run/savepoint-0000000099.h5";
  std::ofstream(newest) << "unreadable";
  std::filesystem::permissions(newest, std::filesystem::perms::none);
  if (std::ifstream(newest).is_open()) GTEST_SKIP() << "this user may read everything, as root may";

  const ProgramResult result = run_program(built_program("digits"), digits_arguments({}, folder));

  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, ContainsRegex("error .*" + newest));
  EXPECT_THAT(result.output, Not(HasSubstr("passed over")));
}

// A value in the shell's environment was meant for another program.
TEST(Supervise, TakesNoDeviceFromItsEnvironment) {
  const TemporaryFolder folder;
  std::vector<std::string> all{"HOLDFAST_DEVICE=cuda:0", built_program("digits")};
  const std::vector<std::string> own = digits_arguments({}, folder);
  all.insert(all.end(), own.begin(), own.end());

  const ProgramResult result = run_program("/usr/bin/env", all);

  EXPECT_EQ(result.exit_code, 0) << result.output;
}

// Rules that make the CUDA calls of one rank fail never applied: the replica did not know its rank.
TEST(Supervise, GivesReplicasTheRankThatTheyAreStartedAs) {
  const TemporaryFolder folder;
  const RunningProgram program(built_program("digits"),
                               digits_arguments({.replicas = 2, .options = {{"--epochs", "1000"}}}, folder));
  ASSERT_TRUE(comes_true([&] { return replica_pids(folder).size() == 2; }));

  for (const auto& [rank, pid] : replica_pids(folder)) {
    const std::string end(1, '\0'), variables = end + read_file("/proc/" + std::to_string(pid) + "/environ");
    EXPECT_NE(variables.find(end + "HOLDFAST_RANK=" + std::to_string(rank) + end), std::string::npos) << rank;
  }
}

}  // namespace holdfast
