#include "detect/step_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace holdfast::recovery {
namespace {

using namespace std::chrono_literals;

TEST(StepTimes, AreZeroBeforeTheFirstStep) {
  StepTimes times;
  times.record(5s, 0);

  EXPECT_EQ(times.p99(), 0ns);
  EXPECT_EQ(times.steps(), 0U);
}

TEST(StepTimes, CountEachStepOfARecord) {
  StepTimes times;
  times.record(1s, 2);
  times.record(10ms, 98);
  EXPECT_EQ(times.p99(), 1s);

  times.record(10ms, 100);

  EXPECT_EQ(times.steps(), 200U);
  EXPECT_EQ(times.p99(), 10ms);
}

TEST(StepTimes, AreExceededByOneInAHundred) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> draw(17, 1);
  StepTimes times;
  std::vector<std::chrono::nanoseconds> drawn;
  for (std::size_t step = 0; step < 400; ++step) {
    drawn.emplace_back(std::llround(draw(random)));
    times.record(drawn.back(), 1);
  }

  const auto longer = std::count_if(drawn.begin(), drawn.end(), [&](auto time) { return time > times.p99(); });

  EXPECT_EQ(longer, 4);
}

TEST(StepTimes, ForgetWhatIsOld) {
  StepTimes times;
  for (std::size_t step = 0; step < StepTimes::kRecords; ++step) times.record(1h, 1000);
  for (std::size_t step = 0; step < StepTimes::kRecords; ++step) times.record(1ms, 1);

  EXPECT_EQ(times.p99(), 1ms);
}

}  // namespace
}  // namespace holdfast::recovery
