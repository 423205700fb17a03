#include "holdfast/core/memory_space.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace holdfast {
namespace {

// Longer than a vector of every instruction set, with a rest.
constexpr std::size_t kFloats = 67;

TEST(HostMemory, FindsWhatIsNotFiniteAtEveryPlace) {
  const std::vector<std::uint32_t> not_finite = {
      0x7F80'0000,  // infinity
      0xFF80'0000,  // minus infinity
      0x7FC0'0000,  // a quiet NaN
      0xFFC0'0000,
      0x7F80'0001,  // a signaling NaN
      0xFFFF'FFFF,
  };
  std::vector<float> array(kFloats, 1.5F);

  for (const std::uint32_t bits : not_finite) {
    for (std::size_t place = 0; place < kFloats; ++place) {
      array[place] = std::bit_cast<float>(bits);
      EXPECT_FALSE(host_memory().is_finite(array)) << std::hex << bits << std::dec << " at " << place;
      array[place] = 1.5F;
    }
  }
}

TEST(HostMemory, TakesAllNumbersForFinite) {
  using Limits = std::numeric_limits<float>;
  std::vector<float> array;
  while (array.size() < kFloats) {
    for (const float number : {Limits::max(), Limits::min(), Limits::denorm_min(), 0.0F, 1.0F}) {
      array.push_back(number);
      array.push_back(-number);
    }
  }

  EXPECT_TRUE(host_memory().is_finite(array));
  EXPECT_TRUE(host_memory().is_finite({}));
}

}  // namespace
}  // namespace holdfast
