// Compares the error that tests on a device allow for products in tf32 with the error that tensor cores make. They
// truncate factors, or get rounded ones.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "gpu/layers/support/layer_test.h"

namespace holdfast {
namespace {

// Rounds to `bits` of mantissa, towards zero.
double cut(float value, int bits) {
  const std::uint32_t mask = ~((std::uint32_t{1} << (23 - bits)) - 1);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & mask);
}

// Rounds to the nearest number.
double rounded(float value, int bits) {
  const std::uint32_t half = std::uint32_t{1} << (22 - bits);
  return cut(std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) + half), bits);
}

// The largest error of many sums of `terms` products, with the factors of the tests on a device.
template <class Change>
double worst_error(std::int64_t terms, const Change& change) {
  constexpr std::int64_t kProducts = 2'000'000;
  double worst = 0;
  const auto count = static_cast<std::size_t>(terms);
  for (std::int64_t seed = 0; seed < std::max<std::int64_t>(kProducts / terms, 100); ++seed) {
    const Floats left = random_values(static_cast<std::uint64_t>(2 * seed), count),
                 right = random_values(static_cast<std::uint64_t>(2 * seed + 1), count);
    double error = 0;
    for (std::size_t i = 0; i < count; ++i) {
      error += change(left[i]) * change(right[i]) - static_cast<double>(left[i]) * static_cast<double>(right[i]);
    }
    worst = std::max(worst, std::abs(error));
  }
  return worst;
}

constexpr int kTf32Bits = 10;
constexpr int kBfloat16Bits = 7;

class Tf32Tolerance : public testing::TestWithParam<std::int64_t> {
 protected:
  double tolerance() const { return product_tolerance(Precision::tf32, GetParam()); }
};

TEST_P(Tf32Tolerance, HasRoomForFactorsThatAreCut) {
  EXPECT_LT(worst_error(GetParam(), [](float value) { return cut(value, kTf32Bits); }), tolerance());
}

TEST_P(Tf32Tolerance, HasRoomForFactorsThatAreRounded) {
  EXPECT_LT(worst_error(GetParam(), [](float value) { return rounded(value, kTf32Bits); }), tolerance());
}

// A larger tolerance would not find errors.
TEST_P(Tf32Tolerance, HasNoneForFactorsOfFewerBits) {
  EXPECT_GT(worst_error(GetParam(), [](float value) { return cut(value, kBfloat16Bits); }), tolerance());
}

INSTANTIATE_TEST_SUITE_P(Terms, Tf32Tolerance, testing::Values(1, 3, 5, 33, 300, 784, 8000));

}  // namespace
}  // namespace holdfast
