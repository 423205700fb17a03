// Programs with several supervise() calls. Their processes must know whether they are replicas.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "holdfast/base/shared_memory.h"
#include "support/count_of.h"
#include "support/program.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using testing::Not;

ProgramResult run_calls(const std::string& way, const TemporaryFolder& folder) {
  return run_program(built_program("calls_program"), {way, folder / "run"});
}

ProgramResult run_folds(const std::vector<std::string>& arguments, const std::string& faults = "") {
  std::vector<std::string> all = {"HOLDFAST_FAULTS=" + faults, built_program("folds")};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program("/usr/bin/env", all);
}

// The lines "fold 1  loss 0.001  weights 33..." and "mean loss ...", without the log.
std::vector<std::string> fold_results_in(const std::string& output) {
  std::vector<std::string> lines;
  std::istringstream text(output);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("fold ") || line.starts_with("mean ")) lines.push_back(line);
  }
  return lines;
}

}  // namespace

// All three directories had fold 0's training, and the exit code was 0.
TEST(SeveralRuns, TrainEachFoldAsIfItWereTheOnlyOne) {
  const TemporaryFolder folder;
  const ProgramResult all = run_folds({folder / "all"});
  ASSERT_EQ(all.exit_code, 0) << all.output;
  const std::vector<std::string> results = fold_results_in(all.output);
  ASSERT_EQ(results.size(), 4U) << all.output;

  for (int fold = 0; fold < 3; ++fold) {
    const ProgramResult alone = run_folds({folder / "alone", std::to_string(fold)});
    EXPECT_EQ(fold_results_in(alone.output), std::vector{results.at(static_cast<std::size_t>(fold))}) << alone.output;
  }
  EXPECT_NE(results[0].substr(results[0].find("weights")), results[1].substr(results[1].find("weights")));
}

TEST(SeveralRuns, RecoverEachFoldFromADeath) {
  const TemporaryFolder folder;
  const std::vector<std::string> expected = fold_results_in(run_folds({folder / "undisturbed"}).output);

  const ProgramResult result = run_folds({folder / "killed"}, "rank=1,step=40,fault=kill");

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(fold_results_in(result.output), expected) << result.output;
  for (int fold = 0; fold < 3; ++fold) {
    EXPECT_THAT(read_file(folder / ("killed/fold" + std::to_string(fold)) + "/journal.jsonl"),
                HasSubstr("\"restart\""));
  }
}

TEST(SeveralRuns, ContinueWhereTheWholeProgramWasKilled) {
  const TemporaryFolder folder;
  const std::vector<std::string> expected = fold_results_in(run_folds({folder / "undisturbed"}).output);
  const std::string faults = "rank=0,step=40,fault=kill-watchdog";

  // One kill in each fold; the fold before has finished by then.
  for (int fold = 0; fold < 3; ++fold) EXPECT_EQ(run_folds({folder / "killed"}, faults).exit_code, 128 + 9);
  const ProgramResult result = run_folds({folder / "killed"}, faults);

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(fold_results_in(result.output), expected) << result.output;
}

TEST(SeveralRuns, StartAnewTogetherAndKeepTheEarlierOnes) {
  const TemporaryFolder folder;
  const std::vector<std::string> expected = fold_results_in(run_folds({folder / "all"}).output);

  const ProgramResult result = run_folds({folder / "all", "fresh"});

  EXPECT_EQ(fold_results_in(result.output), expected) << result.output;
  for (int fold = 0; fold < 3; ++fold) {
    const std::string kept = folder / ("all/fold" + std::to_string(fold) + ".1");
    EXPECT_TRUE(std::filesystem::exists(kept + "/results.json")) << kept;
  }
}

// Runs that the fresh start had not reached were old ones. The program printed one mean over old and new runs, and
// returned 0.
TEST(SeveralRuns, ContinueAnInterruptedFreshStart) {
  const TemporaryFolder folder;
  const std::vector<std::string> expected = fold_results_in(run_folds({folder / "all"}).output);
  ASSERT_EQ(run_folds({folder / "all", "fresh"}, "rank=0,step=40,fault=kill-watchdog").exit_code, 128 + 9);

  const ProgramResult result = run_folds({folder / "all"});
  const ProgramResult again = run_folds({folder / "all"});

  EXPECT_EQ(fold_results_in(result.output), expected) << result.output;
  EXPECT_EQ(fold_results_in(again.output), expected) << again.output;
  for (int fold = 0; fold < 3; ++fold) {
    const std::string directory = folder / ("all/fold" + std::to_string(fold));
    EXPECT_TRUE(std::filesystem::exists(directory + ".1/results.json")) << result.output;
    EXPECT_FALSE(std::filesystem::exists(directory + ".2")) << again.output;
  }
  EXPECT_EQ(count_of("the fresh start of this program, which was interrupted,", result.output), 2U) << result.output;
  EXPECT_EQ(count_of("interrupted", again.output), 0U) << again.output;
}

// A second start of the program found the first run in use. When it left, it marked the fresh start as finished.
TEST(SeveralRuns, LeaveAFreshStartToTheProcessThatOwnsTheFirstRun) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_folds({folder / "all", "fresh"}, "rank=0,step=40,fault=kill-watchdog").exit_code, 128 + 9);
  const std::string first = folder / "all/fold0";
  ASSERT_THAT(read_file(first + "/start.json"), HasSubstr("interrupted"));
  {
    const FileDescriptor lock(::open((first + "/lock").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(lock.value(), LOCK_EX), 0);
    EXPECT_EQ(run_folds({folder / "all"}).exit_code, 1);
  }

  EXPECT_THAT(read_file(first + "/start.json"), HasSubstr("interrupted"));
  EXPECT_EQ(run_folds({folder / "all"}).exit_code, 0);
  EXPECT_THAT(read_file(first + "/start.json"), Not(HasSubstr("interrupted")));
}

// A damaged record of the first run's start ended the program, and so did the remedy that the error named.
TEST(SeveralRuns, ContinueWithADamagedRecordOfTheirStartOnRequest) {
  const TemporaryFolder folder;
  const std::vector<std::string> expected = fold_results_in(run_folds({folder / "all"}).output);
  std::ofstream(folder / "all/fold0/start.json") << "{";

  const ProgramResult refused = run_folds({folder / "all"});
  const ProgramResult resumed =
      run_program("/usr/bin/env", {"HOLDFAST_START=resume", built_program("folds"), folder / "all"});

  EXPECT_EQ(refused.exit_code, 1) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("set HOLDFAST_START=resume to go on"));
  EXPECT_EQ(fold_results_in(resumed.output), expected) << resumed.output;
}

TEST(SeveralRuns, RefuseOneDirectoryForTwo) {
  const TemporaryFolder folder;
  const ProgramResult result = run_calls("same_directory", folder);

  EXPECT_THAT(result.output, HasSubstr("codes 0 1"));
  EXPECT_THAT(result.output, HasSubstr("give each call one of its own"));
}

TEST(SeveralRuns, RefuseARunWithinARun) {
  const TemporaryFolder folder;
  const ProgramResult result = run_calls("nested", folder);

  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("within a training function"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run/inner"));
}

TEST(SeveralRuns, RefuseCallsThatDifferBetweenProcesses) {
  const TemporaryFolder folder;
  const ProgramResult others = run_calls("other_calls", folder);
  EXPECT_EQ(others.exit_code, 1) << others.output;
  EXPECT_THAT(others.output, HasSubstr("must make the same supervise() calls"));
}

// The error was "never registered as a worker", and named headers that a program of the SDK does not use.
TEST(SeveralRuns, NameTheCallThatAReplicaDidNotMake) {
  const TemporaryFolder folder;
  const ProgramResult none = run_calls("no_call", folder);
  EXPECT_EQ(none.exit_code, 1) << none.output;
  EXPECT_THAT(none.output,
              HasSubstr("ended with code 0 without call 1 of supervise(), for the run directory " + folder / "run" +
                        ", which it was started for; each process of a program must make "
                        "the same supervise() calls in the same order"));
  EXPECT_THAT(none.output, Not(HasSubstr("worker.h")));
}

// The error was "exited with code 0 without having finished", after four starts.
TEST(SeveralRuns, NameTheCallThatAReplicaLeftOut) {
  const TemporaryFolder folder;
  const ProgramResult result = run_calls("too_few_calls", folder);

  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("ended without call 2 of supervise(), for the run directory " +
                                       folder / "run/b" + ", which it was started for; each process"));
}

TEST(SeveralRuns, RefuseASecondOneUnderHoldfastRun) {
  const TemporaryFolder folder;
  const ProgramResult result =
      run_program(built_program("holdfast"), {"run", "--replicas", "2", "--run-dir", folder / "run", "--",
                                              built_program("calls_program"), "twice", folder / "own"});

  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_THAT(result.output, HasSubstr("a second time"));
}

TEST(SeveralRuns, DoNotStartAfterAStop) {
  const TemporaryFolder folder;
  const ProgramResult result = run_calls("stopped", folder);

  EXPECT_EQ(result.exit_code, 75) << result.output;
  EXPECT_THAT(result.output, HasSubstr("codes 75 75"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run/b"));
}

// The first run ended as usual, and its exit code 0 hid that the program was asked to stop.
TEST(SeveralRuns, DoNotStartAfterAStopThatCameWhileOneEnded) {
  const TemporaryFolder folder;
  const ProgramResult result = run_calls("stopped_late", folder);

  EXPECT_EQ(result.exit_code, 75) << result.output;
  EXPECT_THAT(result.output, HasSubstr("codes 0 75"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run/b"));
}

// The signal came when a replica had finished already, and was taken for the end of the run alone.
TEST(SeveralRuns, DoNotStartAfterAStopThatCameWhenAReplicaHadFinished) {
  const TemporaryFolder folder;
  const ProgramResult result = run_calls("stopped_last", folder);

  EXPECT_EQ(result.exit_code, 75) << result.output;
  EXPECT_THAT(result.output, HasSubstr("codes 0 75"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run/b"));
}

// The runs were trained, and their results were then read from a directory that no process writes to.
TEST(SeveralRuns, GiveTheirResultsToAProgramThatTrainsAlone) {
  const TemporaryFolder folder;
  const std::vector<std::string> expected = fold_results_in(run_folds({folder / "all"}).output);
  const auto run_alone = [&](const std::string& directory) {
    return run_program("/usr/bin/env", {"HOLDFAST_ALONE=1", built_program("folds"), directory});
  };

  EXPECT_EQ(fold_results_in(run_alone(folder / "alone").output), expected);
  std::ofstream(folder / "all/fold0/results.json") << "{}";
  EXPECT_EQ(fold_results_in(run_alone(folder / "all").output), expected);
}

// is_replica_process() was false once training had begun, and the code after supervise() ran three times.
TEST(SeveralRuns, AProcessKnowsWhatItIsAndOnlyTheFirstContinues) {
  const TemporaryFolder folder;
  const ProgramResult result = run_calls("once", folder);

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(count_of("before: first", result.output), 1U) << result.output;
  EXPECT_EQ(count_of("before: replica", result.output), 2U);
  EXPECT_EQ(count_of("within: replica", result.output), 2U);
  EXPECT_EQ(count_of("trained: replica", result.output), 2U);
  EXPECT_EQ(count_of("after: first", result.output), 1U);
  EXPECT_EQ(count_of("after: replica", result.output), 0U);
  EXPECT_EQ(count_of("not flushed by rank", result.output), 2U);
  // A program that a replica starts before its run is not a replica.
  EXPECT_EQ(count_of("asked: first", result.output), 2U);
  EXPECT_EQ(count_of("asked: replica", result.output), 0U);
}

TEST(SeveralRuns, AReplicaMayStartAProgramWithARunOfItsOwn) {
  const TemporaryFolder folder;
  const ProgramResult result = run_calls("starts", folder);

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("inner program ended with 0"));
  EXPECT_EQ(count_of("after: first", result.output), 1U) << result.output;
}

TEST(SeveralRuns, AHostWatchesReplicasOfAnotherExecutable) {
  const TemporaryFolder folder;
  const std::vector<std::string> arguments = {built_program("own_executable_trainer"), folder / "run"};
  const ProgramResult result = run_program(built_program("own_executable_host"), arguments);

  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(count_of("the window opens", result.output), 1U);
  EXPECT_THAT(result.output, HasSubstr("trained 20 steps"));

  // It has no training function of its own.
  const ProgramResult debugged = run_program(
      "/usr/bin/env", {"HOLDFAST_ALONE=1", built_program("own_executable_host"), arguments[0], folder / "debugged"});
  EXPECT_EQ(debugged.exit_code, 1);
  EXPECT_THAT(debugged.output, HasSubstr("whose replicas are another program; ask for it in that program"));

  const ProgramResult alone = run_program(arguments[0], {folder / "alone"});
  EXPECT_EQ(alone.exit_code, 0) << alone.output;
  EXPECT_EQ(read_file(folder / "run/results.json"), read_file(folder / "alone/results.json"));
}

}  // namespace holdfast
