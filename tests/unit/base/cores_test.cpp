#include "holdfast/base/cores.h"

#include <sched.h>

#include <thread>

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(Cores, AreThoseThatTheThreadMayRunOn) {
  int count = 0;
  // A thread of its own, so that its mask stays with it.
  std::thread thread([&] {
    cpu_set_t all;
    CPU_ZERO(&all);
    ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
    ASSERT_EQ(core_count(), CPU_COUNT(&all));
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
      if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
    }
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    count = core_count();
  });
  thread.join();
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace holdfast
