#pragma once

// See vector_kernels.h. A row of neighbours is reduced in lanes (arithmetic/lanes.h). Where the reduced numbers lie
// apart, neighbouring rows are reduced side by side, each in the order of its numbers.

#include "compute/arithmetic/lanes.h"
#include "compute/cpu/kernels/lane_sums.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

// [reduced, inner] to [inner], in tiles whose sums stay in the first-level cache.
template <class Number, class Combine>
[[gnu::always_inline]] inline void reduce_columns(const RowReduction& reduction, const float* from, Number first,
                                                  const Combine& combine, double divisor, float* to) {
  constexpr std::int64_t kTile = 128;
  const std::int64_t inner = reduction.inner;
  for (std::int64_t begin = 0; begin < inner; begin += kTile) {
    const std::int64_t width = inner - begin < kTile ? inner - begin : kTile;
    alignas(64) Number results[kTile];
    for (std::int64_t i = 0; i < width; ++i) results[i] = first;
    for (std::int64_t r = 0; r < reduction.reduced; ++r) {
      const float* const row = from + r * inner + begin;
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) results[i] = combine(results[i], row[i]);
    }
    for (std::int64_t i = 0; i < width; ++i) {
      to[begin + i] = static_cast<float>(divisor == 1.0 ? results[i] : results[i] / divisor);
    }
  }
}

double divisor_of(const RowReduction& reduction) {
  return reduction.kind == ReductionKind::mean ? static_cast<double>(reduction.reduced) : 1.0;
}

void reduce(const RowReduction& reduction, const float* from, float* to) {
  const bool is_largest = reduction.kind == ReductionKind::maximum;
  const double divisor = divisor_of(reduction);
  for (std::int64_t outer = 0; outer < reduction.outer; ++outer) {
    const float* const block = from + outer * reduction.reduced * reduction.inner;
    float* const result = to + outer * reduction.inner;
    if (reduction.inner == 1) {
      *result = is_largest ? largest_of_row(reduction.reduced, [=](std::int64_t i) { return block[i]; })
                           : static_cast<float>(sum_of_numbers(block, reduction.reduced) / divisor);
    } else if (is_largest) {
      reduce_columns(
          reduction, block, -__builtin_inff(), [](float a, float b) { return larger_or_nan(a, b); }, 1.0, result);
    } else {
      reduce_columns(
          reduction, block, 0.0, [](double sum, float value) { return sum + value; }, divisor, result);
    }
  }
}

void reduce_products(const RowReduction& reduction, const float* a, const float* b, float* to) {
  const double divisor = divisor_of(reduction);
  for (std::int64_t row = 0; row < reduction.outer; ++row) {
    const float* const x = a + row * reduction.reduced;
    const float* const y = b + row * reduction.reduced;
    to[row] = reduction.kind == ReductionKind::maximum
                  ? largest_of_row(reduction.reduced, [=](std::int64_t i) { return x[i] * y[i]; })
                  : static_cast<float>(sum_of_products(x, y, reduction.reduced) / divisor);
  }
}

}  // namespace
}  // namespace holdfast::compute
