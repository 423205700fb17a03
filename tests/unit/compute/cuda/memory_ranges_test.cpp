#include "compute/cuda/runtime/memory_ranges.h"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast::compute {
namespace {

TEST(MemoryRanges, ContainWhatLiesInOneOfThem) {
  const std::vector<std::byte> memory(100);
  const std::span<const std::byte> all(memory);
  MemoryRanges ranges;
  ranges.add(all.subspan(10, 20));
  ranges.add(all.subspan(30, 20));

  EXPECT_TRUE(ranges.contain(all.subspan(10, 20)));
  EXPECT_TRUE(ranges.contain(all.subspan(15, 5)));
  EXPECT_TRUE(ranges.contain(all.subspan(49, 1)));
  EXPECT_FALSE(ranges.contain(all.subspan(5, 10))) << "begins before";
  EXPECT_FALSE(ranges.contain(all.subspan(45, 10))) << "ends after the range";
  EXPECT_FALSE(ranges.contain(all.subspan(25, 10))) << "lies in two";
  EXPECT_FALSE(ranges.contain(all.subspan(60, 10)));
}

TEST(MemoryRanges, ForgetWhatIsRemovedOnce) {
  const std::vector<std::byte> memory(100);
  const std::span<const std::byte> range(memory);
  MemoryRanges ranges;
  ranges.add(range);

  EXPECT_TRUE(ranges.remove(range));
  EXPECT_FALSE(ranges.remove(range));
  EXPECT_FALSE(ranges.contain(range));
}

TEST(MemoryRanges, ForgetWhatSeveralShareWithTheLastOfThem) {
  const std::vector<std::byte> memory(100);
  const std::span<const std::byte> range = std::span<const std::byte>(memory).first(50);
  MemoryRanges ranges;
  EXPECT_FALSE(ranges.share(range));
  ranges.add(range);

  EXPECT_TRUE(ranges.share(range));
  EXPECT_FALSE(ranges.share(range.first(20))) << "is another one";

  EXPECT_FALSE(ranges.remove(range));
  EXPECT_TRUE(ranges.contain(range));
  EXPECT_TRUE(ranges.remove(range));
  EXPECT_FALSE(ranges.contain(range));
}

}  // namespace
}  // namespace holdfast::compute
