#include "train/saving/memory_snapshot_schedule.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using Clock = MemorySnapshotSchedule::Clock;

TEST(MemorySnapshotSchedule, FollowsTheGivenNumberOfSteps) {
  MemorySnapshotSchedule schedule(3);

  EXPECT_FALSE(schedule.is_due(1, Clock::time_point{}));
  EXPECT_TRUE(schedule.is_due(3, Clock::time_point{}));
  schedule.taken(Clock::time_point{}, Clock::time_point{} + 1h);
  EXPECT_TRUE(schedule.is_due(6, Clock::time_point{} + 1h));
}

TEST(MemorySnapshotSchedule, LetsSnapshotsTakeASmallShareOfTheTime) {
  MemorySnapshotSchedule schedule(0);
  const Clock::time_point end = Clock::time_point{} + 10ms;
  ASSERT_TRUE(schedule.is_due(1, Clock::time_point{}));

  schedule.taken(Clock::time_point{}, end);

  EXPECT_FALSE(schedule.is_due(2, end + 1999ms));
  EXPECT_TRUE(schedule.is_due(3, end + 2s));
}

TEST(MemorySnapshotSchedule, WaitsForTheSnapshotThatIsBeingWritten) {
  const MemorySnapshotSchedule as_often_as_is_cheap(0);
  const MemorySnapshotSchedule each_third(3);

  EXPECT_FALSE(as_often_as_is_cheap.is_due(3, Clock::time_point{}, true));
  EXPECT_TRUE(each_third.is_due(3, Clock::time_point{}, true)) << "every third step was asked for";
}

TEST(MemorySnapshotSchedule, LetsWritingInTheBackgroundTakeALargerShare) {
  MemorySnapshotSchedule schedule(0);
  const Clock::time_point end = Clock::time_point{} + 100ms;
  schedule.taken(Clock::time_point{}, Clock::time_point{} + 1ms);

  schedule.written(Clock::time_point{}, end);

  EXPECT_FALSE(schedule.is_due(2, end + 999ms));
  EXPECT_TRUE(schedule.is_due(3, end + 1s));
}

}  // namespace
}  // namespace holdfast
