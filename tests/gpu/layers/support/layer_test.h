#pragma once

// Operations on a device beside those of the host.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/support/gpu_test.h"
#include "holdfast/base/error.h"

namespace holdfast {

using Floats = std::vector<float>;

// Of a sum of `terms` products of numbers below 1, added in two orders. The host adds many of its sums one after the
// other in f32: each addition rounds by up to 2^-24 of a partial sum that grows as the square root of its terms, and so
// many such errors, of either sign, add up to `terms` * 2^-24 (beside exact sums, oneDNN 2.6 was off by 0.96 of it in
// those of 200704 terms). The other half is the device's. Few terms have the root alone, which leaves room for the
// worst of a million elements, times `roundings` where a way of computing adds some of its own.
inline float sum_tolerance(std::int64_t terms, float roundings = 1) {
  const auto count = static_cast<float>(terms);
  return roundings * 0x1p-20F * std::sqrt(count) + 0x1p-23F * count;
}

// The same where factors are rounded by the device. tf32: tensor cores cut each to 10 bits of mantissa, towards zero
// and so by up to 2^-10 of it (a kernel that rounds them before is off by half of that), so that each product is off by
// up to 2^-9. Such errors have either sign, for the products have: they add up to a fifth of 2^-9 times the root of the
// terms, of which the worst of a million elements is five times as much; few terms are off by 2^-9 each at the worst.
// The product allows twice the root (unit/compute/cuda/products/tf32_tolerance_test.cpp). bf16 is the sum's alone,
// where `factors_of()` is what was multiplied; but tensor cores cut where they add 16 products to a partial sum, always
// towards zero: 2^-24 of it, terms / 16 times (Fasi, Higham, Mikaitis and Pranesh, 2021). In tf32 that is lost in the
// rest.
inline float product_tolerance(Precision precision, std::int64_t terms, float roundings = 1) {
  const auto count = static_cast<float>(terms);
  const float sums = sum_tolerance(terms, roundings);
  switch (precision) {
    case Precision::f32:
      return sums;
    case Precision::tf32:
      return sums + 0x1p-9F * std::min(count, 2 * std::sqrt(count));
    case Precision::bf16:
      return sums + 0x1p-28F * count * std::sqrt(count);
  }
  HOLDFAST_ASSERT(false);
}

// What a product at this precision has for factors, as far as that is known exactly.
Floats factors_of(Precision precision, const Floats& values);

// "F32", for the names of tests.
std::string test_name(Precision precision);

// How many floats differ by more than `tolerance`, and by how much the worst; empty where none does.
std::string differences(const Floats& expected, const Floats& actual, float tolerance);

class LayerTest : public GpuTest {
 protected:
  compute::Backend& host() { return *host_; }
  Floats factors_of(const Floats& values) const { return holdfast::factors_of(precision(), values); }

  // Content that no operation may leave behind.
  DeviceArray output(std::int64_t floats) { return upload(Floats(static_cast<std::size_t>(floats), 77)); }

  static Floats values(std::uint64_t seed, std::int64_t count) {
    return random_values(seed, static_cast<std::size_t>(count));
  }

 private:
  const std::unique_ptr<compute::Backend> host_ = compute::make_cpu_backend(1);
};

}  // namespace holdfast
