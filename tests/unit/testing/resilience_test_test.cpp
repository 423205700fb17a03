#include "holdfast/testing/resilience_test.h"

#include <gtest/gtest.h>

#include "holdfast/base/error.h"

namespace holdfast::resilience {
namespace {

RunResult finished(const std::string& digest, std::int64_t step = 27) {
  return {.exit_code = 0, .replicas = 2, .last_fit = FinishedFit{.step = step, .weights_digest = digest}};
}

RunResult ended(int exit_code, const std::string& sentence) {
  return {.exit_code = exit_code, .sentence = sentence, .replicas = 2};
}

Verdict verdict_on(const std::vector<std::string>& faults, const RunResult& run) {
  return judge({.faults = faults}, finished("aa"), run).verdict;
}

TEST(Judge, SeesTheSameWeightsAtTheSameStep) {
  EXPECT_EQ(verdict_on({"rank=1,step=10,fault=kill"}, finished("aa")), Verdict::same_digest);
  EXPECT_EQ(verdict_on({"rank=1,step=10,fault=kill"}, finished("bb")), Verdict::other_digest);
  EXPECT_EQ(verdict_on({"rank=1,step=10,fault=kill"}, finished("aa", 26)), Verdict::other_digest);
  EXPECT_EQ(verdict_on({}, {.exit_code = 0, .replicas = 2}), Verdict::other_digest);
}

TEST(Judge, LetsARunStopForAFullDiskAndNotForADeath) {
  const RunResult run = ended(1, "the savepoint cannot be written");

  EXPECT_EQ(verdict_on({"rank=0,step=12,fault=full-disk,phase=writing"}, run), Verdict::documented_stop);
  EXPECT_EQ(verdict_on({"rank=0,step=12,fault=kill"}, run), Verdict::ended);
}

TEST(Judge, TakesNoEndForDocumentedThatSaysNothingOrHasAnotherExitCode) {
  const std::vector<std::string> faults = {"rank=0,step=12,fault=io-error,phase=writing"};

  EXPECT_EQ(verdict_on(faults, ended(1, "")), Verdict::ended);
  EXPECT_EQ(verdict_on(faults, ended(139, "Segmentation fault")), Verdict::ended);
}

TEST(Judge, LetsARunStopWhenOneStepFailsThreeTimes) {
  const std::string death = "rank=1,step=10,fault=kill,phase=";

  EXPECT_EQ(verdict_on({death + "data", death + "forward", death + "reduce"}, ended(70, "step 10 failed three times")),
            Verdict::documented_stop);
  EXPECT_EQ(verdict_on({death + "data", death + "forward"}, ended(70, "step 10 failed")), Verdict::ended);
}

TEST(Judge, KnowsWhichWrongNumbersNobodyCanSee) {
  EXPECT_EQ(verdict_on({"rank=1,step=10,fault=flip,target=gradient"}, finished("bb")), Verdict::documented_limit);
  EXPECT_EQ(verdict_on({"rank=1,step=10,fault=flip,target=weight"}, finished("bb")), Verdict::other_digest);
  RunResult alone = finished("bb");
  alone.replicas = 1;
  EXPECT_EQ(verdict_on({"rank=0,step=10,fault=flip,target=weight"}, alone), Verdict::documented_limit);
}

TEST(Judge, KnowsThatNobodyElseHasTheStateOfTheLastOneLeft) {
  const std::string flip = "rank=1,step=10,fault=flip,target=weight";
  RunResult pair = finished("bb");
  pair.replicas = 2;
  RunResult three = finished("bb");
  three.replicas = 3;

  EXPECT_EQ(verdict_on({"rank=0,step=10,fault=kill", flip}, pair), Verdict::documented_limit);
  EXPECT_EQ(verdict_on({"rank=0,step=9,fault=kill", flip}, pair), Verdict::other_digest);
  EXPECT_EQ(verdict_on({"rank=0,step=10,fault=pause", flip}, pair), Verdict::other_digest);
  EXPECT_EQ(verdict_on({"rank=0,step=10,fault=kill", flip}, three), Verdict::other_digest);
}

TEST(Judge, TakesNoRunForASurvivorThatHangsOrLeavesProcesses) {
  RunResult hanging = finished("aa");
  hanging.is_out_of_time = true;
  RunResult leaving = finished("aa");
  leaving.processes_left = {4711};

  EXPECT_EQ(verdict_on({}, hanging), Verdict::out_of_time);
  EXPECT_EQ(verdict_on({}, leaving), Verdict::processes_left);
  EXPECT_FALSE(has_survived(Verdict::out_of_time));
  EXPECT_FALSE(has_survived(Verdict::processes_left));
}

TEST(ResilienceTest, SaysWhyNothingCanBeComparedWhenTheUndisturbedRunFails) {
  ResilienceTest test({.command = {"/bin/sh", "-c", "echo no data {run_dir}; exit 3"}});

  try {
    test.undisturbed();
    FAIL() << "the run failed, and nobody said so";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed_replica);
    EXPECT_NE(std::string(error.what()).find("exit code 3: no data"), std::string::npos) << error.what();
  }
}

TEST(ResilienceTest, RefusesFaultsThatMakeNoSenseBeforeItRunsAnything) {
  ResilienceTest test({.command = {"/nowhere", "{run_dir}"}});

  try {
    test.run({.faults = {"rank=1,step=10,fault=kil"}});
    FAIL() << "there is no such fault";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace holdfast::resilience
