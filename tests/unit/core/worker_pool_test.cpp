#include "core/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/comes_true.h"

namespace holdfast {

TEST(WorkerPool, DoesEachTaskOnce) {
  WorkerPool pool(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::atomic<int>> calls(17);

    pool.run(17, [&](int, int index) { ++calls[static_cast<std::size_t>(index)]; });

    for (const auto& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(WorkerPool, GivesAWorkerNumberToOneCallAtATime) {
  WorkerPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<int> collisions{0};

  pool.run(1000, [&](int worker, int) {
    if (++inside[static_cast<std::size_t>(worker)] > 1) ++collisions;
    --inside[static_cast<std::size_t>(worker)];
  });

  EXPECT_EQ(collisions, 0);
}

TEST(WorkerPool, RethrowsAFailureAndWorksOn) {
  WorkerPool pool(2);
  const auto fail_at_three = [](int, int index) {
    if (index == 3) throw std::runtime_error("three");
  };

  EXPECT_THROW(pool.run(10, fail_at_three), std::runtime_error);

  std::atomic<int> calls{0};
  pool.run(10, [&](int, int) { ++calls; });
  EXPECT_EQ(calls, 10);
}

// Which of two wrong samples a message names must not depend on which thread is faster. Task 1 fails first, mostly.
TEST(WorkerPool, RethrowsTheFailureOfTheLowestIndex) {
  WorkerPool pool(2);
  for (int round = 0; round < 100; ++round) {
    std::promise<void> other_fails;
    const auto task = [&](int, int index) {
      if (index == 1) other_fails.set_value();
      if (index == 0) other_fails.get_future().wait_for(kPatience);
      throw std::out_of_range(std::to_string(index));
    };

    try {
      pool.run(2, task);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "0");
    }
  }
}

TEST(WorkerPool, DoesNothingForNoTasks) {
  WorkerPool pool(2);
  pool.run(0, [](int, int) { FAIL(); });
}

}  // namespace holdfast
