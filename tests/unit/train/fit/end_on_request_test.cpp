// fit() ends on all ranks where one of them asks for it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "holdfast/holdfast.h"
#include "support/temporary_folder.h"
#include "support/thread_replica.h"
#include "unit/train/support/small_training.h"

namespace holdfast {

// The clocks of replicas differ, and all end after the same step.
TEST(EndOnRequest, EndsTheTrainingOfAllWhenTheTimeOfOneReplicaIsSpent) {
  const TemporaryFolder folder;
  std::vector<Outcome> outcomes = outcomes_of({.replicas = 3, .run_directory = folder.path()}, [](Replica& replica) {
    std::chrono::steady_clock::time_point time{};
    // Reached by the steps of rank 2 alone.
    const auto tick = [&](TrainingContext& context, const Logs&) {
      if (context.rank() == 2) time += std::chrono::seconds(1);
    };
    const TimerOptions four_steps{.limit = std::chrono::seconds(4), .now = [&time] { return time; }};
    return train_small(replica, {LambdaCallback{{.on_step_end = tick}}, Timer(four_steps), ModelCheckpoint()}, 3);
  });

  // Four steps until it asks, and the one with which all learn of it.
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.step, 5);
  EXPECT_EQ(outcomes[0].digest, outcomes[2].digest);
  EXPECT_THAT(savepoint_files(folder.path()), testing::ElementsAre("savepoint-0000000005.h5"));
}

}  // namespace holdfast
