#include "compute/arithmetic/image_element.h"

#include <gtest/gtest.h>

namespace holdfast::compute {
namespace {

TEST(ImageElement, IsFoundInArraysOfMoreThan31Bits) {
  constexpr std::int64_t kHeight = 7, kWidth = 5, kChannels = 3;
  for (const std::int64_t first : {std::int64_t{0}, std::int64_t{0x7FFFFFFF} - 20, std::int64_t{1} << 40}) {
    for (std::int64_t index = first; index < first + 200; ++index) {
      const ImageElement element(index, Divisor(kHeight), Divisor(kWidth), Divisor(kChannels));

      const std::int64_t line = element.sample * kHeight + element.row;
      EXPECT_EQ((line * kWidth + element.column) * kChannels + element.channel, index);
      EXPECT_TRUE(element.row >= 0 && element.row < kHeight && element.column >= 0 && element.column < kWidth &&
                  element.channel >= 0 && element.channel < kChannels)
          << index;
    }
  }
}

}  // namespace
}  // namespace holdfast::compute
