#include "train/state/batch_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Changes = std::vector<BatchChange>;

const Changes kShrinks = {{.step = 10, .replicas = 4}, {.step = 25, .replicas = 3}};

TEST(BatchChanges, HoldFromTheirStepOn) {
  EXPECT_EQ(replicas_at(kShrinks, 9), 0);
  EXPECT_EQ(replicas_at(kShrinks, 10), 4);
  EXPECT_EQ(replicas_at(kShrinks, 24), 4);
  EXPECT_EQ(replicas_at(kShrinks, 25), 3);
  EXPECT_EQ(replicas_at(kShrinks, 1000), 3);
  EXPECT_EQ(replicas_at({}, 0), 0);
}

TEST(BatchChanges, AreNotedOnce) {
  Changes changes = kShrinks;

  note_replicas(changes, 30, 3);

  EXPECT_EQ(changes, kShrinks);
}

TEST(BatchChanges, ForgetThoseAfterAStepThatWasSetBack) {
  Changes changes = kShrinks;

  note_replicas(changes, 5, 2);

  EXPECT_THAT(changes, ElementsAre(BatchChange{.step = 5, .replicas = 2}));
}

TEST(BatchChanges, LeaveNoTraceOfGenerationsWithoutAStep) {
  Changes changes = kShrinks;

  note_replicas(changes, 30, 2);
  note_replicas(changes, 30, 1);
  EXPECT_THAT(changes, ElementsAre(kShrinks[0], kShrinks[1], BatchChange{.step = 30, .replicas = 1}));

  note_replicas(changes, 30, 3);
  EXPECT_EQ(changes, kShrinks);
}

TEST(BatchChanges, AreReplayedOnlyInTheOrderOfTheirSteps) {
  EXPECT_THAT(problem_of_replay({}), IsEmpty());
  EXPECT_THAT(problem_of_replay(kShrinks), IsEmpty());
  EXPECT_THAT(problem_of_replay({{.step = 3, .replicas = 1}, {.step = 3, .replicas = 2}}),
              HasSubstr("step 3 comes after step 3"));
  EXPECT_THAT(problem_of_replay({{.step = -1, .replicas = 1}}), HasSubstr("step -1"));
  EXPECT_THAT(problem_of_replay({{.step = 0, .replicas = 0}}), HasSubstr("0 replicas at step 0"));
}

TEST(BatchChanges, ContradictAnotherListOnlyUpToTheStepThatTheRunHasReached) {
  const Changes later = {{.step = 0, .replicas = 4}, {.step = 20, .replicas = 3}};

  EXPECT_THAT(contradiction_of(kShrinks, kShrinks, 100), IsEmpty());
  EXPECT_THAT(contradiction_of({}, later, 100), IsEmpty());
  EXPECT_THAT(contradiction_of(kShrinks, later, 20), IsEmpty());
  EXPECT_EQ(contradiction_of(kShrinks, later, 21),
            "the step after 20 updates had the batch of 4 replicas, and the list has 3");
}

}  // namespace
}  // namespace holdfast
