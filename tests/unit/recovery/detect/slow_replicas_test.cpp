// What happens to slow replicas with each option: journal lines, events, and assignments of shards.

#include "detect/slow_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kStragglersWindow = 32;

// Two members of a generation in virtual time. Member 0 takes 10 ms a shard; the test sets the time of member 1.
class SlowReplicasTest : public testing::Test {
 protected:
  SlowReplicas watch(WhenSlow when_slow) {
    SlowReplicas replicas(when_slow, journal_);
    open(replicas, 0, {});
    return replicas;
  }

  void open(SlowReplicas& replicas, int generation, const std::vector<int>& shards) {
    replicas.generation_opened(
        {.kind = ActionKind::open_generation, .generation = generation, .members = {7, 9}, .shards = shards}, step_,
        now_);
    shards_ = shards.empty() ? std::vector<int>{3, 3} : shards;
  }

  // The events that follow from this many steps.
  std::vector<Event> train(SlowReplicas& replicas, int steps, std::chrono::milliseconds of_the_second) {
    std::vector<Event> events;
    for (int i = 0; i < steps; ++i) {
      ++step_;
      now_ += 100ms;
      for (std::size_t rank = 0; rank < 2; ++rank) {
        loads_[rank].shards = shards_[rank];
        loads_[rank].computing += shards_[rank] * (rank == 0 ? 10ms : of_the_second);
        ++loads_[rank].steps;
      }
      for (Event& event : replicas.look(loads_, step_, now_)) events.push_back(std::move(event));
    }
    return events;
  }

  // The only event that follows from this many steps.
  Event only_event(SlowReplicas& replicas, int steps, std::chrono::milliseconds of_the_second) {
    const std::vector<Event> events = train(replicas, steps, of_the_second);
    EXPECT_EQ(events.size(), 1U);
    return events.empty() ? Event() : events.front();
  }

  std::vector<nlohmann::json> journalled(const std::string& name) const {
    std::vector<nlohmann::json> lines;
    std::ifstream file(folder_ / "journal.jsonl");
    for (std::string line; std::getline(file, line);) {
      nlohmann::json object = nlohmann::json::parse(line);
      if (object.at("event") == name) lines.push_back(std::move(object));
    }
    return lines;
  }

  TemporaryFolder folder_;
  Journal journal_{folder_ / "journal.jsonl"};
  std::vector<Load> loads_{{.member = 7}, {.member = 9}};
  std::vector<int> shards_;
  std::int64_t step_ = 0;
  Moment now_{};
};

TEST_F(SlowReplicasTest, AreOnlyReportedWhenTheOptionSaysSo) {
  SlowReplicas replicas = watch(WhenSlow::report);

  EXPECT_THAT(train(replicas, 200, 20ms), IsEmpty());

  const auto lines = journalled("straggler");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].at("member"), 9);
  EXPECT_EQ(lines[1].at("rank"), 1);
  EXPECT_EQ(lines[1].at("is_straggler"), true);
  EXPECT_EQ(lines[1].at("milliseconds_per_round"), 20);
}

TEST_F(SlowReplicasTest, GetFewerShardsOnceAGeneration) {
  SlowReplicas replicas = watch(WhenSlow::deal);

  const Event event = only_event(replicas, 200, 20ms);

  EXPECT_EQ(event.kind, EventKind::assignment_proposed);
  EXPECT_EQ(event.generation, 0);
  EXPECT_THAT(event.shards, ElementsAre(4, 2));
}

TEST_F(SlowReplicasTest, AreInTheJournalWithTheirAssignmentAndItsTimes) {
  SlowReplicas replicas = watch(WhenSlow::deal);
  train(replicas, 2 * kStragglersWindow, 20ms);

  open(replicas, 1, {4, 2});
  open(replicas, 2, {4, 2});
  open(replicas, 3, {});

  const auto lines = journalled("dealt");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].at("generation"), 1);
  EXPECT_EQ(lines[0].at("shards"), (std::vector<int>{4, 2}));
  EXPECT_EQ(lines[0].at("milliseconds_per_round"), (std::vector<double>{10, 20}));
  EXPECT_EQ(lines[1].at("is_even"), true);
}

TEST_F(SlowReplicasTest, GetAsManyShardsAgainWhenTheyAreQuick) {
  SlowReplicas replicas = watch(WhenSlow::deal);
  train(replicas, 2 * kStragglersWindow, 20ms);
  open(replicas, 1, {4, 2});

  EXPECT_THAT(train(replicas, 100, 20ms), IsEmpty());
  const Event event = only_event(replicas, 2 * kStragglersWindow, 10ms);

  EXPECT_THAT(event.shards, ElementsAre(3, 3));
}

TEST_F(SlowReplicasTest, CauseEventsWhenTheyBecomeSlowAndWhenASpareIsReady) {
  SlowReplicas replicas = watch(WhenSlow::replace);

  const Event event = only_event(replicas, 200, 20ms);

  EXPECT_EQ(event.kind, EventKind::slow);
  EXPECT_EQ(event.member, 9);
  EXPECT_EQ(event.what, "it computes 2.0 times as long as the others");
  ASSERT_EQ(replicas.slow_ones().size(), 1U);
  train(replicas, 200, 10ms);
  EXPECT_THAT(replicas.slow_ones(), IsEmpty());
}

TEST_F(SlowReplicasTest, DropReportsAboutAnEarlierGeneration) {
  SlowReplicas replicas = watch(WhenSlow::deal);
  replicas.work_reported(7, 0, {.shards = 3, .at_once = 2});
  ASSERT_TRUE(replicas.work_of(7).has_value());

  open(replicas, 1, {});
  replicas.work_reported(7, 0, {.shards = 3, .at_once = 2});

  EXPECT_FALSE(replicas.work_of(7).has_value());
}

TEST_F(SlowReplicasTest, RefuseImpossibleWork) {
  SlowReplicas replicas = watch(WhenSlow::deal);

  EXPECT_THROW(replicas.work_reported(7, 0, {.shards = 0, .at_once = 1}), Error);
  EXPECT_THROW(replicas.work_reported(7, 0, {.shards = 1, .at_once = 0}), Error);
  EXPECT_THROW(replicas.work_reported(7, 0, {.shards = 2'000'000, .at_once = 1}), Error);
}

}  // namespace
}  // namespace holdfast::recovery
