// All methods against the definition, for every width and for lengths around the size of a vector.

#include "codec/shuffle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

std::vector<std::byte> content(std::size_t bytes) {
  return testing::make_array("content", DType::u8, {bytes}).bytes;
}

// What HDF5's filter does, by its manual.
std::vector<std::byte> shuffled_by_definition(std::span<const std::byte> in, std::size_t width, std::size_t plane) {
  std::vector<std::byte> out(plane * width);
  for (std::size_t i = 0; i < in.size(); ++i) out[i % width * plane + i / width] = in[i];
  return out;
}

// Lengths around the size of a vector, and a long one.
constexpr std::size_t kCounts[] = {0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 100, 4096, 10'007};

constexpr ShuffleMethod kMethods[] = {ShuffleMethod::plain, ShuffleMethod::vectors, ShuffleMethod::vectors_past_caches};

class ShuffleOf : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ShuffleOf, EqualsTheDefinitionByEveryMethod) {
  const std::size_t width = GetParam();
  for (const std::size_t count : kCounts) {
    const std::vector<std::byte> in = content(count * width);
    const std::vector<std::byte> expected = shuffled_by_definition(in, width, count);
    for (const ShuffleMethod method : kMethods) {
      std::vector<std::byte> out(in.size(), std::byte{0xEE});
      std::vector<std::byte> back(in.size(), std::byte{0xEE});

      shuffle(in, width, count, out.data(), method);
      unshuffle(out.data(), width, count, back, method);

      EXPECT_TRUE(out == expected) << count;
      EXPECT_TRUE(back == in) << count;
    }
  }
}

TEST_P(ShuffleOf, FillsLongerPlanesWithZeros) {
  const std::size_t width = GetParam();
  const std::vector<std::byte> in = content(100 * width);
  for (const ShuffleMethod method : kMethods) {
    std::vector<std::byte> out(133 * width, std::byte{0xEE});
    std::vector<std::byte> back(in.size());

    shuffle(in, width, 133, out.data(), method);
    unshuffle(out.data(), width, 133, back, method);

    EXPECT_TRUE(out == shuffled_by_definition(in, width, 133));
    EXPECT_TRUE(back == in);
  }
}

TEST_P(ShuffleOf, WritesOnlyItsOwnBytes) {
  const std::size_t width = GetParam();
  const std::vector<std::byte> in = content(50 * width);
  std::vector<std::byte> out(in.size() + 64, std::byte{0xEE});
  std::vector<std::byte> back(in.size() + 64, std::byte{0xEE});

  shuffle(in, width, 50, out.data() + 1);
  unshuffle(out.data() + 1, width, 50, std::span(back).subspan(1, in.size()));

  for (const auto& bytes : {out, back}) {
    EXPECT_EQ(bytes.front(), std::byte{0xEE});
    EXPECT_EQ(std::count(bytes.begin() + static_cast<std::ptrdiff_t>(in.size()) + 1, bytes.end(), std::byte{0xEE}), 63);
  }
}

TEST_P(ShuffleOf, IsUndoneToAnyAddressFromPlanesAnywhere) {
  const std::size_t width = GetParam();
  constexpr std::size_t kCount = 75;
  const std::vector<std::byte> in = content(kCount * width);
  const std::vector<std::byte> shuffled = shuffled_by_definition(in, width, kCount);
  std::vector<std::vector<std::byte>> planes;
  std::vector<const std::byte*> places;
  for (std::size_t b = 0; b < width; ++b) {
    const auto begin = shuffled.begin() + static_cast<std::ptrdiff_t>(b * kCount);
    planes.emplace_back(begin, begin + kCount);
  }
  for (const auto& plane : planes) places.push_back(plane.data());
  for (const ShuffleMethod method : kMethods) {
    for (std::size_t offset = 1; offset < 33; ++offset) {
      std::vector<std::byte> back(in.size() + 64, std::byte{0xEE});

      unshuffle(places, std::span(back).subspan(offset, in.size()), method);

      EXPECT_TRUE(std::equal(in.begin(), in.end(), back.begin() + static_cast<std::ptrdiff_t>(offset))) << offset;
      EXPECT_EQ(std::count(back.begin(), back.begin() + static_cast<std::ptrdiff_t>(offset), std::byte{0xEE}), offset);
      EXPECT_EQ(std::count(back.end() - 31, back.end(), std::byte{0xEE}), 31) << offset;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Width, ShuffleOf, ::testing::Values(1, 2, 4, 8));

}  // namespace
}  // namespace holdfast::format
