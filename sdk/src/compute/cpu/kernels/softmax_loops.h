#pragma once

// See vector_kernels.h. A row is worked on in groups of kLanes numbers. The last one is filled up with minus
// infinities, which add nothing, so that short rows are computed in whole vectors, too.

#include "compute/arithmetic/lanes.h"
#include "compute/arithmetic/softmax.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

struct RowTail {
  alignas(64) float numbers[kLanes];
  std::int64_t first;  // of the tail, in the row
  std::int64_t count;
};

[[gnu::always_inline]] inline void load_tail(const float* row, std::int64_t count, RowTail& tail) {
  // A whole last group counts as the tail, so a row of up to kLanes numbers is one.
  tail.first = (count - 1) / kLanes * kLanes;
  tail.count = count - tail.first;
  const float* const from = row + tail.first;
#pragma omp simd
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    tail.numbers[lane] = lane < tail.count ? from[lane] : -kInfiniteFloat;
  }
}

[[gnu::always_inline]] inline void store_tail(const RowTail& tail, float* row) {
  float* const to = row + tail.first;
  // In pieces of the stores before it. A copy across two of them would wait until both are in the cache.
  constexpr std::int64_t kPiece = 4;
  std::int64_t lane = 0;
  for (; lane + kPiece <= tail.count; lane += kPiece) {
    __builtin_memcpy(to + lane, tail.numbers + lane, kPiece * sizeof(float));
  }
  for (; lane < tail.count; ++lane) to[lane] = tail.numbers[lane];
}

// As largest_of_row(), whose order this is.
[[gnu::always_inline]] inline float largest_with_tail(const float* row, const RowTail& tail) {
  const auto combine = [](float largest, float value) { return larger_or_nan(largest, value); };
  alignas(64) float lanes[kLanes];
  if (tail.first == 0) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = tail.numbers[lane];
  } else {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = row[lane];
    for (std::int64_t i = kLanes; i < tail.first; i += kLanes) {
#pragma omp simd
      for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = combine(lanes[lane], row[i + lane]);
    }
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = combine(lanes[lane], tail.numbers[lane]);
  }
  combine_pairs<kLanes / 2>(lanes, combine);
  return lanes[0];
}

// Writes the exponentials of whole groups to the row of results, unless none are wanted, and leaves those of the last
// group in the tail. The order of the sum is that of lanes.h.
template <bool kIsWanted>
[[gnu::always_inline]] inline SoftmaxSums exponentials_of_row(const float* row, RowTail& tail, float* exponentials) {
  const float shift = softmax_shift(largest_with_tail(row, tail));
  alignas(64) double lanes[kLanes];
  // The first group begins the lanes: to clear them first would take longer than a short row.
  if (tail.first == 0) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      tail.numbers[lane] = softmax_exponential(tail.numbers[lane], shift);
      lanes[lane] = tail.numbers[lane];
    }
  } else {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const float exponential = softmax_exponential(row[lane], shift);
      if constexpr (kIsWanted) exponentials[lane] = exponential;
      lanes[lane] = exponential;
    }
    for (std::int64_t i = kLanes; i < tail.first; i += kLanes) {
#pragma omp simd
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        const float exponential = softmax_exponential(row[i + lane], shift);
        if constexpr (kIsWanted) exponentials[i + lane] = exponential;
        lanes[lane] += exponential;
      }
    }
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      tail.numbers[lane] = softmax_exponential(tail.numbers[lane], shift);
      lanes[lane] += tail.numbers[lane];
    }
  }
  combine_pairs<kLanes / 2>(lanes, [](double sum, double value) { return sum + value; });
  return {shift, lanes[0]};
}

SoftmaxSums softmax_row(const float* row, std::int64_t count, float* exponentials) {
  RowTail tail;
  load_tail(row, count, tail);
  if (exponentials == nullptr) return exponentials_of_row<false>(row, tail, nullptr);
  const SoftmaxSums sums = exponentials_of_row<true>(row, tail, exponentials);
  store_tail(tail, exponentials);
  return sums;
}

void softmax(const float* input, std::int64_t rows, std::int64_t channels, float* output) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const result = output + row * channels;
    RowTail tail;
    load_tail(input + row * channels, channels, tail);
    const float divisor = softmax_divisor(exponentials_of_row<true>(input + row * channels, tail, result).sum);
#pragma omp simd
    for (std::int64_t c = 0; c < tail.first; ++c) result[c] = result[c] / divisor;
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) tail.numbers[lane] = tail.numbers[lane] / divisor;
    store_tail(tail, result);
  }
}

void softmax_backward(const float* output, const float* output_gradient, std::int64_t rows, std::int64_t channels,
                      float* input_gradient) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* const y = output + row * channels;
    const float* const dy = output_gradient + row * channels;
    float* const dx = input_gradient + row * channels;
    const auto sum = static_cast<float>(sum_of_row(channels, [=](std::int64_t c) { return y[c] * dy[c]; }));
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) dx[c] = y[c] * (dy[c] - sum);
  }
}

}  // namespace
}  // namespace holdfast::compute
