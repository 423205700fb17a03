#include "compute/arithmetic/gradient_clipping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "unit/compute/arithmetic/support/values.h"

namespace holdfast::compute {
namespace {

double squares_of(const std::vector<float>& array) {
  std::vector<double> chunk_sums(norm_chunks({.begin = 0, .end = array.size()}));
  return sum_of_squares(array, chunk_sums);
}

TEST(GradientClipping, AddsSquares) {
  EXPECT_EQ(squares_of({}), 0);
  EXPECT_EQ(squares_of({-3}), 9);
  EXPECT_EQ(squares_of(std::vector<float>(3 * kNormChunk + 5, 2)), 4.0 * (3 * kNormChunk + 5));
}

// The bits of a run depend on this order: each lane by itself, then the lanes in a tree; then chunks in the same way.
TEST(GradientClipping, AddsInTheOrderOfLanesAndChunks) {
  const std::vector<float> array = random_values(2 * kNormChunk + 1000, 3);
  const auto tree = [](std::vector<double> lanes) {
    while (lanes.size() > 1) {
      const std::size_t half = lanes.size() / 2;
      for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
      lanes.resize(half);
    }
    return lanes[0];
  };
  std::vector<double> chunks(kNormLanes);
  for (std::size_t chunk = 0; chunk < 3; ++chunk) {
    std::vector<double> lanes(kNormLanes);
    for (std::size_t i = chunk * kNormChunk; i < std::min((chunk + 1) * kNormChunk, array.size()); ++i) {
      lanes[i % kNormLanes] += static_cast<double>(array[i]) * array[i];
    }
    chunks[chunk] = tree(lanes);
  }

  EXPECT_EQ(squares_of(array), tree(chunks));
}

TEST(GradientClipping, ScalesWhatIsLargerAndFinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(norm_scale(16, 2), 0.5F);
  EXPECT_EQ(norm_scale(16, 4), 1);
  EXPECT_EQ(norm_scale(0, 4), 1);
  EXPECT_EQ(norm_scale(kInfinity, 4), 1);
  EXPECT_EQ(norm_scale(std::nan(""), 4), 1);
}

}  // namespace
}  // namespace holdfast::compute
