#include "holdfast/base/deadline.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

TEST(Deadline, HasNothingRemainingOnceItHasPassed) {
  const Deadline deadline = Deadline::at(Deadline::Clock::now() - 1s);

  EXPECT_TRUE(deadline.has_passed());
  EXPECT_EQ(deadline.remaining(), Deadline::Clock::duration::zero());
}

TEST(Deadline, HasPassedAtOnceIfItHasNoTime) {
  EXPECT_TRUE(Deadline::after(0s).has_passed());
}

TEST(Deadline, RemainsNoLongerThanItWasGiven) {
  const Deadline deadline = Deadline::after(1h);

  EXPECT_FALSE(deadline.has_passed());
  EXPECT_GT(deadline.remaining(), 0s);
  EXPECT_LE(deadline.remaining(), 1h);
}

TEST(Deadline, KeepsTheMomentThatItWasMadeFrom) {
  const auto moment = Deadline::Clock::now() + 5s;

  EXPECT_EQ(Deadline::at(moment).moment(), moment);
}

}  // namespace
}  // namespace holdfast
