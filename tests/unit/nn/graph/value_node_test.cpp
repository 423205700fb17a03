#include "nn/graph/value_node.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "holdfast/nn/functions.h"

namespace holdfast {
namespace {

TEST(ValueNodes, AreFreedAlsoInAChainThatIsLongerThanAStackIsDeep) {
  const Value start = input({1});
  {
    Value x = start;
    // A stack of 8 MiB has 41 bytes for each of them.
    for (int i = 0; i < 200'000; ++i) x = x + 1.0F;
    EXPECT_EQ(start.node().use_count(), 2);
  }

  EXPECT_EQ(start.node().use_count(), 1);
}

TEST(ValueNodes, AreFreedOnceWhenSeveralReadersShareThem) {
  const Value start = input({1});
  {
    Value x = start;
    // Each node has two readers, so there are 2^100 paths to the first one.
    for (int i = 0; i < 100; ++i) x = x * x;
  }

  EXPECT_EQ(start.node().use_count(), 1);
}

TEST(ValueNodes, AreFreedByTheLastOfSeveralThreads) {
  const Value start = input({1});
  {
    Value x = start;
    for (int i = 0; i < 1000; ++i) x = x + 1.0F;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([own = x]() mutable {
        for (int i = 0; i < 100; ++i) own = own * 2.0F;
      });
    }
    x = start;
    for (std::thread& thread : threads) thread.join();
  }

  EXPECT_EQ(start.node().use_count(), 1);
}

}  // namespace
}  // namespace holdfast
