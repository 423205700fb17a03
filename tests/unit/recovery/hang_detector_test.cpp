#include "hang_detector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Looks every 100 ms, as the watchdog does.
class HangDetectorTest : public testing::Test {
 protected:
  std::optional<Hang> look_for(std::chrono::milliseconds duration, const std::vector<Pulse>& pulses) {
    std::optional<Hang> hang = detector_.look(pulses, now_);
    for (const Moment end = now_ + duration; now_ < end && !hang;) {
      now_ += 100ms;
      hang = detector_.look(pulses, now_);
    }
    return hang;
  }

  HangDetector detector_{2, {.hang_after = 30s, .start_timeout = 120s}};
  Moment now_;
};

TEST_F(HangDetectorTest, NamesTheReplicaThatMakesNoProgress) {
  const std::optional<Hang> hang = look_for(30s, {{.rank = 0, .phase = Phase::waiting_for_peers, .step = 12},
                                                  {.rank = 1, .phase = Phase::computing, .step = 12}});

  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(hang->rank, 1);
  EXPECT_EQ(hang->what, "no progress for 30.0 s in phase computing at step 12");
}

TEST_F(HangDetectorTest, SaysNothingBeforeTheTimeIsUp) {
  EXPECT_FALSE(look_for(29'900ms, {{.rank = 0, .phase = Phase::computing}}).has_value());
}

TEST_F(HangDetectorTest, StartsAfreshWithEveryProgress) {
  for (std::uint64_t progress = 1; progress < 10; ++progress) {
    EXPECT_FALSE(look_for(29s, {{.rank = 0, .progress = progress, .phase = Phase::saving}}).has_value());
  }
}

TEST_F(HangDetectorTest, GrantsMoreTimeToStart) {
  EXPECT_FALSE(look_for(119s, {{.rank = 0, .phase = Phase::starting}}).has_value());
  EXPECT_TRUE(look_for(1s, {{.rank = 0, .phase = Phase::starting}}).has_value());
}

TEST_F(HangDetectorTest, TakesAStoppedReplicaForGuiltyEvenWhenItWaitsForPeers) {
  const std::optional<Hang> hang = look_for(30s, {{.rank = 0, .phase = Phase::waiting_for_peers},
                                                  {.rank = 1, .phase = Phase::waiting_for_peers, .is_stopped = true}});

  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(hang->rank, 1);
  EXPECT_THAT(hang->what, HasSubstr("stopped by a signal"));
}

TEST_F(HangDetectorTest, NamesTheFurthestBehindWhenAllWaitTwiceAsLong) {
  const std::vector<Pulse> pulses{{.rank = 0, .phase = Phase::waiting_for_peers, .step = 8},
                                  {.rank = 1, .phase = Phase::waiting_for_peers, .step = 7}};

  EXPECT_FALSE(look_for(59s, pulses).has_value());
  const std::optional<Hang> hang = look_for(1s, pulses);

  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(hang->rank, 1);
  EXPECT_THAT(hang->what, HasSubstr("all replicas wait for each other"));
}

TEST_F(HangDetectorTest, LetsPeersWaitForOneThatMakesProgress) {
  for (std::uint64_t progress = 1; progress < 10; ++progress) {
    const std::vector<Pulse> pulses{{.rank = 0, .phase = Phase::waiting_for_peers},
                                    {.rank = 1, .progress = progress, .phase = Phase::saving}};
    EXPECT_FALSE(look_for(20s, pulses).has_value());
  }
}

TEST_F(HangDetectorTest, NamesTheOneThatHasHungLongest) {
  look_for(10s, {{.rank = 0, .progress = 1, .phase = Phase::computing}, {.rank = 1, .phase = Phase::computing}});

  const std::optional<Hang> hang =
      look_for(30s, {{.rank = 0, .progress = 2, .phase = Phase::computing}, {.rank = 1, .phase = Phase::computing}});

  ASSERT_TRUE(hang.has_value());
  EXPECT_EQ(hang->rank, 1);
}

TEST_F(HangDetectorTest, DoesNotCountTheTimeInWhichTheMachineSlept) {
  const std::vector<Pulse> pulses{{.rank = 0, .phase = Phase::computing}};
  look_for(29s, pulses);

  now_ += 8h;

  EXPECT_FALSE(detector_.look(pulses, now_).has_value());
}

TEST_F(HangDetectorTest, HasNothingToSayOfNoReplicas) {
  EXPECT_FALSE(look_for(100s, {}).has_value());
}

}  // namespace
}  // namespace holdfast::recovery
