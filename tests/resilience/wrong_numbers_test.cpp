// Wrong numbers on one replica are noticed, and the weights at the end are those of a run without them.

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "resilience/digits_run.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

class WrongNumbers : public testing::Test {
 protected:
  // States are compared after every `every` steps.
  void run(const std::string& fault, int replicas, int every) {
    run({.replicas = replicas,
         .faults = {fault},
         .options = {{"--memory-snapshot-every", std::to_string(every)}, {"--save-every", "0"}}});
  }

  // All gradients of all steps are computed twice.
  void run_checked(const std::vector<std::string>& faults, int replicas) {
    std::filesystem::remove_all(folder_ / "run");
    run({.replicas = replicas,
         .faults = faults,
         .options = {{"--memory-snapshot-every", "5"},
                     {"--save-every", "0"},
                     {"--check-gradients-every", "1"},
                     {"--check-gradients-shards", "0"}}});
  }

  void run(const DigitsRun& digits) {
    const ProgramResult result = run_program(built_program("digits"), digits_arguments(digits, folder_));
    ASSERT_EQ(result.exit_code, 0) << result.output;
    journal_ = journal_of(folder_);
    ASSERT_EQ(events("corruption_injected").size(), 1U);
    EXPECT_EQ(report_of(folder_).at("weights_digest"), undisturbed_digest());
  }

  std::vector<Json> events(const std::string& name) const {
    std::vector<Json> found;
    std::copy_if(journal_.begin(), journal_.end(), std::back_inserter(found),
                 [&](const Json& line) { return line.at("event") == name; });
    return found;
  }

  // The ranks that were replaced.
  std::vector<int> guilty() const {
    std::vector<int> ranks;
    for (const Json& line : events("restart")) ranks.push_back(line.at("restart").at("rank"));
    return ranks;
  }

  TemporaryFolder folder_;
  std::vector<Json> journal_;
};

TEST_F(WrongNumbers, InAWeightOfOneReplicaAreUndoneAndTheReplicaIsReplaced) {
  for (const int rank : {0, 1}) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    std::filesystem::remove_all(folder_ / "run");

    run("rank=" + std::to_string(rank) + ",step=14,phase=after-update,fault=flip,seed=3", 2, 5);

    ASSERT_EQ(events("rolled_back").size(), 1U);
    EXPECT_EQ(events("rolled_back")[0].at("details").at("step"), 15);
    EXPECT_EQ(guilty(), std::vector<int>{rank});
  }
}

// Before the next comparison all replicas have applied the effect of the wrong slot, so none is found to be wrong.
TEST_F(WrongNumbers, InAnOptimizersSlotAreUndoneSomeStepsLater) {
  run("rank=2,step=12,phase=forward,fault=flip,target=slot,seed=1", 3, 5);

  EXPECT_EQ(events("rolled_back").size(), 1U);
  EXPECT_EQ(events("dispute_settled").size(), 1U);
  EXPECT_TRUE(guilty().empty());
}

// The numbers change after the last periodic comparison. The end of the epoch is compared, too.
TEST_F(WrongNumbers, InTheLastStepAreUndone) {
  run("rank=1,step=26,phase=after-update,fault=flip,seed=5", 2, 10);

  EXPECT_EQ(events("rolled_back").size(), 1U);
}

TEST_F(WrongNumbers, BeforeTheFirstSnapshotSendAllBackToTheStart) {
  run("rank=1,step=1,phase=after-update,fault=flip,seed=5", 2, 6);

  ASSERT_EQ(events("rolled_back").size(), 1U);
  EXPECT_TRUE(events("resumed").empty());
}

// A change between the comparison and the copy can only be noticed by the replica itself.
TEST_F(WrongNumbers, ThatAppearWhileASnapshotIsCopiedAreNotKept) {
  run("rank=0,step=10,phase=snapshot,fault=flip,target=slot,seed=3", 2, 5);

  EXPECT_TRUE(events("rolled_back").empty());
  EXPECT_EQ(guilty(), std::vector<int>{0});
}

TEST_F(WrongNumbers, ThatAreNanAreUndone) {
  for (const std::string target : {"loss", "gradient"}) {
    SCOPED_TRACE(target);
    std::filesystem::remove_all(folder_ / "run");

    run("rank=1,step=13,phase=backward,fault=nan,target=" + target, 2, 4);

    ASSERT_EQ(events("rolled_back").size(), 1U);
    EXPECT_EQ(events("rolled_back")[0].at("details").at("step"), 14);
    EXPECT_TRUE(guilty().empty());
  }
}

// A single replica has no other to compare with, and its gradients stay right for two more steps. The savepoint between
// must not keep the NaN.
TEST_F(WrongNumbers, ThatAreNanInASlotReachNoSavepoint) {
  run({.replicas = 1,
       .faults = {"rank=0,step=10,phase=after-update,fault=nan,target=slot"},
       .options = {{"--memory-snapshot-every", "5"}, {"--save-every", "4"}}});

  ASSERT_EQ(events("rolled_back").size(), 1U);
  EXPECT_EQ(events("rolled_back")[0].at("details").at("step"), 12);
  EXPECT_TRUE(guilty().empty());
}

TEST_F(WrongNumbers, InAGradientAreFoundBeforeTheyAreAppliedAndTheReplicaIsReplaced) {
  for (const int replicas : {2, 3}) {
    for (const int rank : {0, replicas - 1}) {
      for (const std::string target : {"gradient", "loss"}) {
        SCOPED_TRACE(target + " of rank " + std::to_string(rank) + " of " + std::to_string(replicas));

        run_checked({"rank=" + std::to_string(rank) + ",step=13,phase=backward,fault=flip,seed=9,target=" + target},
                    replicas);

        ASSERT_EQ(events("wrong_gradient").size(), 1U);
        EXPECT_EQ(events("wrong_gradient")[0].at("details").at("step"), 13);
        EXPECT_EQ(events("wrong_gradient")[0].at("details").at("rank"), rank);
        EXPECT_EQ(guilty(), std::vector<int>{rank});
        EXPECT_TRUE(events("rolled_back").empty());
        EXPECT_TRUE(events("resumed").empty());
      }
    }
  }
}

TEST_F(WrongNumbers, InAGradientOfTheOnlyReplicaAreComputedAgain) {
  run_checked({"rank=0,step=13,phase=backward,fault=flip,target=gradient,seed=2"}, 1);

  EXPECT_EQ(events("wrong_gradient").size(), 1U);
  EXPECT_TRUE(guilty().empty());
}

TEST_F(WrongNumbers, InTheFirstAndInTheLastGradientAreFound) {
  for (const int step : {0, 26}) {
    SCOPED_TRACE(step);

    run_checked({"rank=1,step=" + std::to_string(step) + ",phase=backward,fault=flip,target=gradient,seed=4"}, 2);

    EXPECT_EQ(events("wrong_gradient").size(), 1U);
  }
}

// Gradients that are wrong each time they are computed may come from a wrong state, so all replicas must roll back.
TEST_F(WrongNumbers, InAWeightAreSeenInTheGradientsAndSendAllBack) {
  for (const int replicas : {2, 3}) {
    SCOPED_TRACE(replicas);

    run_checked({"rank=1,step=12,phase=after-update,fault=flip,seed=9"}, replicas);

    ASSERT_EQ(events("rolled_back").size(), 1U);
    EXPECT_EQ(events("rolled_back")[0].at("details").at("step"), 13);
    EXPECT_EQ(guilty(), std::vector<int>{1});
  }
}

// Another replica dies in the same step. The step is computed again, and it may stay unknown which replica was wrong.
TEST_F(WrongNumbers, InAGradientAreNotAppliedWhereAReplicaDiesMeanwhile) {
  for (const std::string phase : {"reduce", "before-update", "after-update"}) {
    SCOPED_TRACE(phase);

    run_checked(
        {"rank=0,step=13,phase=backward,fault=flip,target=gradient,seed=5", "rank=2,step=13,fault=kill,phase=" + phase},
        3);
  }
}

TEST_F(WrongNumbers, AreSearchedForWithoutAnEffectOnTheBits) {
  for (const std::string every : {"0", "1", "7"}) {
    for (const int replicas : {1, 3}) {
      SCOPED_TRACE("every " + every + " steps, " + std::to_string(replicas) + " replicas");

      EXPECT_EQ(completed({.replicas = replicas, .options = {{"--check-gradients-every", every}}}).at("weights_digest"),
                undisturbed_digest());
    }
  }
}

}  // namespace
}  // namespace holdfast
