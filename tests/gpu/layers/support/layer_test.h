#pragma once

// Compares operations on a device with those of the host.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/support/gpu_test.h"
#include "holdfast/base/error.h"

namespace holdfast {

using Floats = std::vector<float>;

// The tolerance for a sum of `terms` products of numbers below 1 that is added in two orders.
//
// The host adds many of its sums one term after another in f32. Each addition rounds by up to 2^-24 of a partial sum,
// which grows as the square root of its terms. These errors have either sign and add up to `terms` * 2^-24; compared
// with exact sums of 200704 terms, oneDNN 2.6 was off by 0.96 of that. The device may be off by as much.
//
// For few terms the square root dominates. It leaves room for the worst of a million elements, times `roundings` if a
// method has more roundings of its own.
inline float sum_tolerance(std::int64_t terms, float roundings = 1) {
  const auto count = static_cast<float>(terms);
  return roundings * 0x1p-20F * std::sqrt(count) + 0x1p-23F * count;
}

// The same if the device rounds factors.
//
// tf32: tensor cores truncate each factor to 10 bits of mantissa, with an error of up to 2^-10 of it; a kernel that
// rounds first makes half of that error. So each product is off by up to 2^-9. Products, and thus their errors, have
// either sign. The errors add up to a fifth of 2^-9 times the square root of the number of terms, and to five times as
// much for the worst of a million elements. Few terms are off by at most 2^-9 each. The tolerance allows twice the
// square root (unit/compute/cuda/products/tf32_tolerance_test.cpp).
//
// bf16: factors_of() has the exact factors, so only the sum has errors. But tensor cores truncate when they add 16
// products to a partial sum, always towards zero: 2^-24 of it, terms / 16 times (Fasi, Higham, Mikaitis and Pranesh,
// 2021). In tf32 this error is negligible.
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

// The factors that a product at this precision multiplies, as far as they are known exactly.
Floats factors_of(Precision precision, const Floats& values);

// The precision in the names of tests, such as "F32".
std::string test_name(Precision precision);

// Says how many floats differ by more than `tolerance`, and by how much; empty if no float does.
std::string differences(const Floats& expected, const Floats& actual, float tolerance);

class LayerTest : public GpuTest {
 protected:
  compute::Backend& host() { return *host_; }
  Floats factors_of(const Floats& values) const { return holdfast::factors_of(precision(), values); }

  // An output with content that every operation must overwrite.
  DeviceArray output(std::int64_t floats) { return upload(Floats(static_cast<std::size_t>(floats), 77)); }

  static Floats values(std::uint64_t seed, std::int64_t count) {
    return random_values(seed, static_cast<std::size_t>(count));
  }

 private:
  const std::unique_ptr<compute::Backend> host_ = compute::make_cpu_backend(1);
};

}  // namespace holdfast
