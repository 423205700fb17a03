#pragma once

// See vector_kernels.h. A row is worked on in groups of kLanes numbers. The last one is filled up with minus
// infinities, which add nothing, so that short rows are computed in whole vectors, too.

#include "compute/arithmetic/lanes.h"
#include "compute/arithmetic/softmax.h"
#include "compute/cpu/kernels/avx512_functions.h"
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

#ifdef __AVX512F__

// The largest of a row. A NaN is passed over: its exponential is a NaN, and so is the sum then.
[[gnu::always_inline]] inline float largest_number(const float* row, std::int64_t count) {
  Vectors<kSideBySide> largest = each<kSideBySide>([](int) { return repeated(-kInfiniteFloat); });
  std::int64_t begin = 0;
  for (; begin + kSideBySide * kVector <= count; begin += kSideBySide * kVector) {
    largest = each<kSideBySide>([&](int i) {
      return _mm512_maskz_max_ps(kAllLanes, _mm512_loadu_ps(row + begin + i * kVector), largest.of[i]);
    });
  }
  for (; begin < count; begin += kVector) {
    const __mmask16 mask = first_lanes(count - begin);
    largest.of[0] = _mm512_mask_max_ps(largest.of[0], mask, _mm512_maskz_loadu_ps(mask, row + begin), largest.of[0]);
  }
  alignas(64) float lanes[kLanes];
  for (int i = 1; i < kSideBySide; ++i) {
    largest.of[0] = _mm512_maskz_max_ps(kAllLanes, largest.of[i], largest.of[0]);
  }
  __builtin_memcpy(lanes, &largest.of[0], sizeof(lanes));
  combine_pairs<kLanes / 2>(lanes, [](float a, float b) { return a > b ? a : b; });
  return lanes[0];
}

typedef double Doubles8 __attribute__((vector_size(64)));

// Divides numbers that it is given with each step of another loop, whose instructions run meanwhile.
struct RowDivision {
  float* row;  // null if there is none
  float divisor;

  template <int kCount>
  [[gnu::always_inline]] inline void step(std::int64_t begin, __mmask16 mask) const {
    if (row == nullptr) return;
    const Vectors<kCount> numbers = load<kCount>(mask, row + begin);
    store(each<kCount>([&](int i) { return numbers.of[i] / divisor; }), mask, row + begin);
  }
};

// Writes the exponentials of a row and returns their sum, in the order of lanes.h.
[[gnu::always_inline]] inline double write_exponentials(const float* row, std::int64_t count, float shift,
                                                        const RowDivision& before, float* exponentials) {
  Doubles8 low = {}, high = {};
  std::int64_t begin = 0;
  for (; begin + kSideBySide * kVector <= count; begin += kSideBySide * kVector) {
    const Vectors<kSideBySide> scores = load<kSideBySide>(kAllLanes, row + begin);
    before.step<kSideBySide>(begin, kAllLanes);
    store(exponential_of_negative(scores - shift), kAllLanes, exponentials + begin);
    for (std::int64_t i = begin; i < begin + kSideBySide * kVector; i += kVector) {
      low += _mm512_maskz_cvtps_pd(0xFF, _mm256_loadu_ps(exponentials + i));
      high += _mm512_maskz_cvtps_pd(0xFF, _mm256_loadu_ps(exponentials + i + kVector / 2));
    }
  }
  for (; begin < count; begin += kVector) {
    const __mmask16 mask = first_lanes(count - begin);
    alignas(64) float lanes[kLanes];
    const Vectors<1> scores = load<1>(mask, row + begin);
    before.step<1>(begin, mask);
    const Vectors<1> found = exponential_of_negative(scores - shift);
    store(found, mask, exponentials + begin);
    // Lanes after the last element add nothing.
    _mm512_store_ps(lanes, _mm512_maskz_mov_ps(mask, found.of[0]));
    low += _mm512_maskz_cvtps_pd(0xFF, _mm256_load_ps(lanes));
    high += _mm512_maskz_cvtps_pd(0xFF, _mm256_load_ps(lanes + kVector / 2));
  }
  alignas(64) double lanes[kLanes];
  __builtin_memcpy(lanes, &low, sizeof(low));
  __builtin_memcpy(lanes + kLanes / 2, &high, sizeof(high));
  combine_pairs<kLanes / 2>(lanes, [](double sum, double value) { return sum + value; });
  return lanes[0];
}

void softmax(const float* input, std::int64_t rows, std::int64_t channels, float* output) {
  RowDivision last = {};
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* const scores = input + row * channels;
    float* const result = output + row * channels;
    const float shift = softmax_shift(largest_number(scores, channels));
    const double sum = write_exponentials(scores, channels, shift, last, result);
    last = {result, softmax_divisor(sum)};
  }
  if (rows == 0) return;
  for_vectors(last.row, channels,
              [=]<int kCount>(std::int64_t begin, const Vectors<kCount>&, auto mask)
                  HOLDFAST_INLINED { last.step<kCount>(begin, mask); });
}

#else

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

#endif

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
