#include "compute/cpu/shared_passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::compute {
namespace {

using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

struct Threads {
  int workers;
  int each;
};

Ranges ranges_of(Threads threads, std::size_t items, std::size_t floats_each) {
  WorkerPool pool(threads.workers);
  std::mutex mutex;
  Ranges ranges;
  shared_passes(pool, threads.each)(items, floats_each, [&](std::size_t begin, std::size_t end) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

TEST(SharedPasses, CoverEachItemOnce) {
  for (const Threads threads : {Threads{1, 1}, Threads{3, 1}, Threads{1, 3}, Threads{2, 2}}) {
    for (const std::size_t items : {0, 1, 15, 16, 17, 1'000'003}) {
      std::size_t next = 0;
      for (const auto& [begin, end] : ranges_of(threads, items, 5)) {
        EXPECT_EQ(begin, next);
        EXPECT_LT(begin, end);
        next = end;
      }
      EXPECT_EQ(next, items);
    }
  }
}

TEST(SharedPasses, CutLongArraysForEachThreadAtLines) {
  constexpr std::size_t kLong = 4'000'003;
  EXPECT_EQ(ranges_of({1, 1}, kLong, 1).size(), 1U);
  for (const Threads threads : {Threads{2, 1}, Threads{1, 2}, Threads{2, 2}}) {
    const Ranges ranges = ranges_of(threads, kLong, 1);

    EXPECT_EQ(ranges.size(), static_cast<std::size_t>(threads.workers * threads.each));
    for (const auto& [begin, end] : ranges) EXPECT_EQ(begin % 16, 0U);
  }
}

TEST(SharedPasses, CutFewLargeItemsAnywhere) {
  const Ranges ranges = ranges_of({2, 1}, 3, 1 << 20);

  EXPECT_EQ(ranges, (Ranges{{0, 1}, {1, 3}}));
}

TEST(SharedPasses, LeaveLittleWorkToTheCaller) {
  WorkerPool pool(2);
  std::thread::id ran;

  shared_passes(pool, 2)(1000, 1, [&](std::size_t, std::size_t) { ran = std::this_thread::get_id(); });

  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST(SharedPasses, RethrowAnExceptionAndWorkOn) {
  for (const Threads threads : {Threads{1, 1}, Threads{2, 1}, Threads{1, 2}, Threads{2, 2}}) {
    WorkerPool pool(threads.workers);
    const ArrayPasses passes = shared_passes(pool, threads.each);
    constexpr std::size_t kLong = 4'000'000;

    EXPECT_THROW(passes(kLong, 1, [](std::size_t, std::size_t) { throw std::runtime_error("full"); }),
                 std::runtime_error);

    std::vector<float> floats(kLong);
    passes(kLong, 1, [&](std::size_t begin, std::size_t end) {
      std::fill(floats.begin() + static_cast<std::ptrdiff_t>(begin), floats.begin() + static_cast<std::ptrdiff_t>(end),
                1.0F);
    });
    EXPECT_EQ(std::count(floats.begin(), floats.end(), 1.0F), static_cast<std::ptrdiff_t>(kLong));
  }
}

}  // namespace
}  // namespace holdfast::compute
