#include "data/batches/thread_choice.h"

#include <gtest/gtest.h>

#include <vector>

#include "holdfast/core/random.h"

namespace holdfast {
namespace {

int threads_for(double load, double step, int most = 8) {
  return threads_to_load(std::vector<double>{load}, std::vector<double>{step}, most);
}

TEST(ThreadChoice, TakesAsManyThreadsAsLoadABatchWithinAStep) {
  EXPECT_EQ(threads_for(0.001, 0.010), 1);
  EXPECT_EQ(threads_for(0.008, 0.010), 1);
  EXPECT_EQ(threads_for(0.0081, 0.010), 2);
  EXPECT_EQ(threads_for(0.030, 0.010), 4);
  EXPECT_EQ(threads_for(1.0, 0.010), 8);
  EXPECT_EQ(threads_for(1.0, 0.010, 3), 3);
}

TEST(ThreadChoice, TakesOneThreadWhereNothingWasMeasured) {
  EXPECT_EQ(threads_to_load({}, std::vector<double>{1}, 4), 1);
  EXPECT_EQ(threads_to_load(std::vector<double>{1}, {}, 4), 1);
  EXPECT_EQ(threads_for(0, 0.01), 1);
  EXPECT_EQ(threads_for(0.01, 0), 8);
  EXPECT_EQ(threads_for(0.01, 0.01, 0), 1);
}

TEST(ThreadChoice, PassesOverSingleLongDurations) {
  EXPECT_EQ(threads_to_load(std::vector<double>{0.03, 0.03, 9}, std::vector<double>{0.01, 60, 0.01}, 8), 4);
}

TEST(ThreadChoice, StaysWithinItsBoundsAndRisesWithTheTimeOfLoading) {
  Random random(1, Purpose::user, 0, 0);
  for (int trial = 0; trial < 200; ++trial) {
    const double load = static_cast<double>(random.uniform());
    const double step = static_cast<double>(random.uniform());
    const int most = 1 + static_cast<int>(random.below(16));
    const int threads = threads_for(load, step, most);
    EXPECT_GE(threads, 1);
    EXPECT_LE(threads, most);
    EXPECT_LE(threads, threads_for(2 * load, step, most));
    EXPECT_GE(threads, threads_for(load, 2 * step, most));
  }
}

TEST(ThreadChoice, IsMadeOnceAWindow) {
  using Seconds = std::chrono::duration<double>;
  ThreadChoice choice(8);
  for (std::size_t batch = 0; batch < ThreadChoice::kWindow; ++batch) {
    EXPECT_FALSE(choice.next().has_value());
    choice.note_load(Seconds(0.03));
    choice.note_step(Seconds(0.01));
  }

  EXPECT_EQ(choice.next(), 4);
  EXPECT_EQ(choice.threads(), 4);
  // Four threads load a batch in a quarter of the time, so nothing changes.
  for (std::size_t batch = 0; batch < 3 * ThreadChoice::kWindow; ++batch) {
    choice.note_load(Seconds(0.03 / 4));
    choice.note_step(Seconds(0.01));
    EXPECT_FALSE(choice.next().has_value());
  }
}

}  // namespace
}  // namespace holdfast
