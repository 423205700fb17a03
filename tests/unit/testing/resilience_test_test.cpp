// The judgement of runs under faults, and runs of small shell programs that pretend to train.

#include "holdfast/testing/resilience_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"

namespace holdfast::resilience {
namespace {

using ::testing::HasSubstr;

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

TEST(Judge, AllowsAStopAfterAFullDiskButNotAfterADeath) {
  const RunResult run = ended(1, "the savepoint cannot be written");

  EXPECT_EQ(verdict_on({"rank=0,step=12,fault=full-disk,phase=writing"}, run), Verdict::documented_stop);
  EXPECT_EQ(verdict_on({"rank=0,step=12,fault=kill"}, run), Verdict::ended);
}

TEST(Judge, RefusesAStopWithoutASentenceOrWithAnotherExitCode) {
  const std::vector<std::string> faults = {"rank=0,step=12,fault=io-error,phase=writing"};

  EXPECT_EQ(verdict_on(faults, ended(1, "")), Verdict::ended);
  EXPECT_EQ(verdict_on(faults, ended(139, "Segmentation fault")), Verdict::ended);
}

TEST(Judge, AllowsAStopWhenOneStepFailsThreeTimes) {
  const std::string death = "rank=1,step=10,fault=kill,phase=";

  EXPECT_EQ(verdict_on({death + "data", death + "forward", death + "reduce"}, ended(70, "step 10 failed three times")),
            Verdict::documented_stop);
  EXPECT_EQ(verdict_on({death + "data", death + "forward"}, ended(70, "step 10 failed")), Verdict::ended);
}

TEST(Judge, KnowsWhichWrongNumbersCannotBeSeen) {
  EXPECT_EQ(verdict_on({"rank=1,step=10,fault=flip,target=gradient"}, finished("bb")), Verdict::documented_limit);
  EXPECT_EQ(verdict_on({"rank=1,step=10,fault=flip,target=weight"}, finished("bb")), Verdict::other_digest);
}

// A run with a flipped weight of rank 1, in step 10 of generation 2 with this many replicas, and with these deaths.
Verdict verdict_on_a_flip(int replicas, const std::vector<LostReplica>& lost) {
  RunResult run = finished("bb");
  run.corruptions = {{.generation = 2, .rank = 1, .step = 10, .replicas = replicas}};
  run.lost = lost;
  return verdict_on({"rank=1,step=10,fault=flip,target=weight"}, run);
}

TEST(Judge, KnowsThatTheLastReplicasStateCannotBeCompared) {
  const LostReplica beside{.generation = 2, .rank = 0, .step = 10};
  const LostReplica before{.generation = 1, .rank = 0, .step = 10};
  const LostReplica later{.generation = 2, .rank = 0, .step = 15};
  const LostReplica itself{.generation = 2, .rank = 1, .step = 10};

  EXPECT_EQ(verdict_on_a_flip(1, {}), Verdict::documented_limit);
  EXPECT_EQ(verdict_on_a_flip(1, {before}), Verdict::documented_limit);
  EXPECT_EQ(verdict_on_a_flip(2, {beside}), Verdict::documented_limit);
  EXPECT_EQ(verdict_on_a_flip(2, {}), Verdict::other_digest);
  EXPECT_EQ(verdict_on_a_flip(2, {before}), Verdict::other_digest);
  EXPECT_EQ(verdict_on_a_flip(2, {later}), Verdict::other_digest);
  EXPECT_EQ(verdict_on_a_flip(2, {itself}), Verdict::other_digest);
  EXPECT_EQ(verdict_on_a_flip(3, {beside}), Verdict::other_digest);
  EXPECT_EQ(verdict_on_a_flip(0, {beside}), Verdict::other_digest) << "the journal does not say";
}

TEST(Judge, DoesNotTakeAHangOrLeftoverProcessesForSurvival) {
  RunResult hanging = finished("aa");
  hanging.is_out_of_time = true;
  RunResult leaving = finished("aa");
  leaving.processes_left = {4711};

  EXPECT_EQ(verdict_on({}, hanging), Verdict::out_of_time);
  EXPECT_EQ(verdict_on({}, leaving), Verdict::processes_left);
  EXPECT_FALSE(has_survived(Verdict::out_of_time));
  EXPECT_FALSE(has_survived(Verdict::processes_left));
}

TEST(ResilienceTest, SaysWhyTheUndisturbedRunFailed) {
  ResilienceTest test({.command = {"/bin/sh", "-c", "echo no data {run_dir}; exit 3"}});

  try {
    test.undisturbed();
    FAIL() << "the run failed, and no error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed_replica);
    EXPECT_NE(std::string(error.what()).find("exit code 3: no data"), std::string::npos) << error.what();
  }
}

// A shell that writes the journal of a finished training, with this line in it.
std::string refusal_of_undisturbed(const std::string& line) {
  const std::string fit = R"({"event":"fit_finished","details":{"step":27,"weights_digest":"aa"}})";
  ResilienceTest test({.command = {"/bin/sh", "-c",
                                   "mkdir -p {run_dir}; cd {run_dir}; echo '" + fit + "' > journal.jsonl; echo '" +
                                       line + "' >> journal.jsonl"}});
  try {
    test.undisturbed();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed_replica);
    return error.what();
  }
  return {};
}

TEST(ResilienceTest, RefusesAnUndisturbedRunThatLostAReplica) {
  EXPECT_THAT(
      refusal_of_undisturbed(R"({"event":"exited","restart":{"generation":1,"rank":1,"step":9,"cause":"signal 11"}})"),
      HasSubstr("it lost rank 1 at step 9 (signal 11). Repair this"));
  EXPECT_THAT(refusal_of_undisturbed(R"({"event":"rolled_back"})"), HasSubstr("it went back to an earlier state"));
  EXPECT_EQ(refusal_of_undisturbed(R"({"event":"resumed"})"), "");
}

TEST(ResilienceTest, RefusesUnreadableFaultsBeforeItRunsAnything) {
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
