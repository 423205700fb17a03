#pragma once

// Operations on a device beside those of the host.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/support/gpu_test.h"

namespace holdfast {

using Floats = std::vector<float>;

// Of a sum of `terms` products of numbers below 1, added in two orders: each rounds by at most 2^-24 of partial sums
// that grow as the square root of their number, which leaves room for the worst of a million elements.
inline float sum_tolerance(std::int64_t terms) {
  return 4 * 0x1p-22F * std::sqrt(static_cast<float>(terms));
}

// The same where factors are rounded by the device. tf32: each to 10 bits of mantissa, so that each product is off by
// up to 2^-9; such errors have either sign. bf16 is the sum's alone, where `factors_of()` is what was multiplied.
inline float product_tolerance(Precision precision, std::int64_t terms) {
  if (precision != Precision::tf32) return sum_tolerance(terms);
  return 0x1p-9F * std::sqrt(static_cast<float>(terms));
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
