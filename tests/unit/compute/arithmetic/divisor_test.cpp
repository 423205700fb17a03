#include "compute/arithmetic/divisor.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace holdfast::compute {
namespace {

constexpr std::int64_t kLargest = Divisor::kLargest;

// Small divisors, divisors near powers of two, and the largest one.
std::vector<std::int64_t> divisors() {
  std::vector<std::int64_t> divisors = {kLargest - 1, kLargest};
  for (std::int64_t i = 1; i <= 1000; ++i) divisors.push_back(i);
  for (std::int64_t power = 1024; power < kLargest; power *= 2) {
    for (const std::int64_t value : {power - 1, power, power + 1}) divisors.push_back(value);
  }
  return divisors;
}

TEST(Divisor, HasTheQuotientsOfADivision) {
  std::mt19937 random(1);
  for (const std::int64_t value : divisors()) {
    const Divisor divisor(value);
    const std::int64_t largest_multiple = kLargest / value * value;
    std::vector<std::int64_t> numbers = {
        0, 1, value - 1, value, largest_multiple - 1, largest_multiple, kLargest, kLargest - 1};
    for (int i = 0; i < 100; ++i) numbers.push_back(random() & kLargest);

    for (const std::int64_t number : numbers) {
      EXPECT_EQ(divisor.quotient(static_cast<std::int32_t>(number)), number / value) << number << " by " << value;
    }
  }
  EXPECT_EQ(Divisor::one().quotient(0x7FFFFFFF), 0x7FFFFFFF);
}

}  // namespace
}  // namespace holdfast::compute
