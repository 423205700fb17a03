// The report's part about slow replicas, from lines of a journal.

#include "journal/slow_story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace holdfast::recovery {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using SlowEnding = RunReport::SlowReplica::Ending;

// Processes 0 and 1 train on device slots 0 and 1, and the test sets the time.
class SlowStoryTest : public testing::Test {
 protected:
  SlowStoryTest() {
    decide("start", 1, {}, {.started = {{0, 0}, {1, 1}}});
    decide("ready", 2, {}, {.opened = 0, .members = {0, 1}});
  }

  void straggler(double time, int member, bool is_slow) {
    story_.take_straggler(time, {{"generation", 0},
                                 {"member", member},
                                 {"rank", member},
                                 {"step", 40},
                                 {"is_straggler", is_slow},
                                 {"score", 2.0},
                                 {"since_step", is_slow ? 8 : -1},
                                 {"milliseconds_per_round", 20.0},
                                 {"waiting_share", 0.25}});
  }
  void assignment(double time, int generation, const std::vector<int>& shards) {
    Json line{{"generation", generation}, {"is_even", shards.empty()}};
    if (!shards.empty()) {
      line.update({{"shards", shards}, {"milliseconds_per_round", {10.0, 20.0}}, {"why", "it is quicker so"}});
    }
    story_.take_assignment(time, line);
  }
  void decide(const std::string& event, double time, Json line, const RecordedActions& actions) {
    line["reason"] = "replica 1 is slow; it stays";
    story_.take_decision(event, time, line, actions);
  }

  const RunReport::SlowReplica& only() const { return story_.replicas().at(0); }

  SlowStory story_;
};

TEST_F(SlowStoryTest, NamesTheSlowReplicaAndSinceWhen) {
  straggler(10, 0, false);
  straggler(10, 1, true);
  straggler(11, 1, true);
  straggler(15, 1, false);

  ASSERT_EQ(story_.replicas().size(), 1U);
  EXPECT_EQ(only().member, 1);
  EXPECT_EQ(only().rank, 1);
  EXPECT_EQ(only().device_slot, 1);
  EXPECT_EQ(only().generation, 0);
  EXPECT_EQ(only().noticed, 10);
  EXPECT_EQ(only().since_step, 8);
  EXPECT_EQ(only().score, 2);
  EXPECT_EQ(only().milliseconds_per_round, 20);
  EXPECT_EQ(only().waiting_share, 0.25);
  EXPECT_EQ(only().ending, SlowEnding::quick_again);
  EXPECT_EQ(only().ended, 15);
  EXPECT_THAT(only().assignments, IsEmpty());
}

TEST_F(SlowStoryTest, HasItsAssignmentsAndTheOneThatEndedThem) {
  straggler(10, 1, true);
  assignment(11, 1, {4, 2});
  assignment(12, 2, {5, 1});
  straggler(20, 1, false);
  assignment(21, 3, {3, 3});
  assignment(22, 4, {});

  const std::vector<RunReport::Assignment>& assignments = only().assignments;
  ASSERT_EQ(assignments.size(), 3U);
  EXPECT_EQ(assignments[0].time, 11);
  EXPECT_EQ(assignments[0].generation, 1);
  EXPECT_THAT(assignments[0].shards, ElementsAre(4, 2));
  EXPECT_THAT(assignments[0].milliseconds_per_round, ElementsAre(10, 20));
  EXPECT_EQ(assignments[0].why, "it is quicker so");
  EXPECT_THAT(assignments[2].shards, ElementsAre(3, 3));
}

TEST_F(SlowStoryTest, HasTheEvenAssignmentAfterItsDeath) {
  straggler(10, 1, true);
  assignment(11, 1, {4, 2});
  decide("died", 12, {{"member", 1}}, {.killed = {1}});
  assignment(13, 2, {});

  EXPECT_EQ(only().ending, SlowEnding::process_ended);
  EXPECT_EQ(only().ended, 12);
  ASSERT_EQ(only().assignments.size(), 2U);
  EXPECT_THAT(only().assignments[1].shards, IsEmpty());
}

TEST_F(SlowStoryTest, NamesItsSuccessor) {
  straggler(10, 1, true);
  decide("slow", 11, {{"member", 1}}, {.killed = {1}, .failures = {{1, "was slow"}}});
  decide("checked_in", 12, {{"member", 0}}, {.opened = 1, .members = {0, 2}});
  decide("exited", 13, {{"member", 1}}, {});

  EXPECT_EQ(only().ending, SlowEnding::replaced);
  EXPECT_EQ(only().ended, 11);
  EXPECT_EQ(only().replaced_by, 2);
  EXPECT_THAT(only().left_alone, IsEmpty());
}

TEST_F(SlowStoryTest, DoesNotTakeASurvivorForItsSuccessor) {
  decide("ready", 3, {}, {.opened = 1, .members = {0, 1, 2}});
  straggler(10, 1, true);
  decide("slow", 11, {{"member", 1}}, {.killed = {1}, .failures = {{1, "was slow"}}});
  decide("checked_in", 12, {{"member", 0}}, {.opened = 2, .members = {0, 2}});

  EXPECT_EQ(only().ending, SlowEnding::replaced);
  EXPECT_EQ(only().replaced_by, -1);
}

TEST_F(SlowStoryTest, SaysWhyItWasLeftAlone) {
  straggler(10, 1, true);
  decide("slow", 11, {{"member", 1}}, {});

  ASSERT_EQ(only().left_alone.size(), 1U);
  EXPECT_EQ(only().left_alone[0].time, 11);
  EXPECT_THAT(only().left_alone[0].sentence, HasSubstr("it stays"));
  EXPECT_EQ(only().ending, SlowEnding::open);
}

TEST_F(SlowStoryTest, LeavesTheEndOpenWhenTheWatchdogEnds) {
  straggler(10, 1, true);
  story_.begin_start();
  straggler(20, 1, false);
  assignment(21, 1, {});

  EXPECT_EQ(only().ending, SlowEnding::open);
  EXPECT_THAT(only().assignments, IsEmpty());
}

TEST_F(SlowStoryTest, IsWrittenAsJsonWithNullsForWhatIsNotKnown) {
  straggler(10, 1, true);
  assignment(11, 1, {4, 2});

  const Json body = to_json(only());

  EXPECT_EQ(body.at("ending"), "open");
  EXPECT_TRUE(body.at("ended").is_null());
  EXPECT_TRUE(body.at("replaced_by").is_null());
  EXPECT_EQ(body.at("deals").at(0).at("shards"), (std::vector<int>{4, 2}));
}

TEST_F(SlowStoryTest, RefusesALineWithoutAMember) {
  EXPECT_THROW(story_.take_straggler(1, {{"is_straggler", true}}), Json::exception);
  EXPECT_THROW(story_.take_assignment(1, {{"shards", {1, 2}}}), Json::exception);
  EXPECT_THAT(story_.replicas(), IsEmpty());
}

}  // namespace
}  // namespace holdfast::recovery
