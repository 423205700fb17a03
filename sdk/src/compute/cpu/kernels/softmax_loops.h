#pragma once

// See vector_kernels.h. A row is worked on in groups of kLanes numbers. The last one is filled up with minus
// infinities, which add nothing, so that short rows are computed in whole vectors, too.

#include "compute/arithmetic/lanes.h"
#include "compute/arithmetic/softmax.h"
#include "compute/cpu/kernels/avx512_functions.h"
#include "compute/cpu/kernels/lane_sums.h"
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

// The largest of a row, as far as it was read. A NaN is passed over: its exponential is a NaN, and so is the sum then.
struct LargestOfRow {
  const float* row;
  Vectors<kFewSideBySide> largest = each<kFewSideBySide>([](int) { return repeated(-kInfiniteFloat); });

  [[gnu::always_inline]] inline void take(std::int64_t begin, __mmask16 mask, int place) {
    Floats16& of = largest.of[place % kFewSideBySide];
    // The instruction gives its second operand where either is a NaN, so the loaded numbers come first.
    of = _mm512_mask_max_ps(of, mask, _mm512_maskz_loadu_ps(mask, row + begin), of);
  }

  [[gnu::always_inline]] inline float found() const {
    // In any order: the largest of several numbers is one of them, and no rounding depends on the order.
    const auto larger = [](Floats16 a, Floats16 b) { return _mm512_maskz_max_ps(kAllLanes, a, b); };
    alignas(64) float lanes[kLanes];
    _mm512_store_ps(lanes, larger(larger(largest.of[0], largest.of[1]), larger(largest.of[2], largest.of[3])));
    combine_pairs<kLanes / 2>(lanes, [](float a, float b) { return a > b ? a : b; });
    return lanes[0];
  }
};

// Calls group(begin, mask) for all groups of vectors of a row: kSideBySide at a time, then fewer.
template <class Group>
[[gnu::always_inline]] inline void for_groups_of_row(std::int64_t count, const Group& group) {
  std::int64_t begin = 0;
  for (; begin + kSideBySide * kVector <= count; begin += kSideBySide * kVector) {
    group.template operator()<kSideBySide>(begin, kAllLanes);
  }
  if (begin + kFewSideBySide * kVector <= count) {
    group.template operator()<kFewSideBySide>(begin, kAllLanes);
    begin += kFewSideBySide * kVector;
  }
  for (; begin < count; begin += kVector) group.template operator()<1>(begin, first_lanes(count - begin));
}

typedef double Doubles8 __attribute__((vector_size(64)));

// A row whose exponentials are to be divided by their sum.
struct RowDivision {
  float* row;  // null if there is none
  float divisor;

  [[gnu::always_inline]] inline void divide(std::int64_t begin, __mmask16 mask) const {
    const Vectors<1> numbers = load<1>(mask, row + begin);
    store(Vectors<1>{{numbers.of[0] / divisor}}, mask, row + begin);
  }
};

// Writes the exponentials of a row and returns their sum, in the order of lanes.h. Meanwhile the row before is divided,
// and the next one is read for its largest number: divisions and memory take their time while other instructions run.
[[gnu::always_inline]] inline double write_exponentials(const float* row, std::int64_t count, float shift,
                                                        const RowDivision& before, LargestOfRow& next,
                                                        float* exponentials) {
  Doubles8 low = {}, high = {};
  const auto add = [&](const float* numbers) HOLDFAST_INLINED {
    low += _mm512_maskz_cvtps_pd(0xFF, _mm256_loadu_ps(numbers));
    high += _mm512_maskz_cvtps_pd(0xFF, _mm256_loadu_ps(numbers + kVector / 2));
  };
  for_groups_of_row(count, [&]<int kCount>(std::int64_t begin, __mmask16 mask) HOLDFAST_INLINED {
    const Vectors<kCount> scores = load<kCount>(mask, row + begin);
    const auto neighbours = [&](int k) HOLDFAST_INLINED {
      if (k >= kCount) return;
      const std::int64_t at = begin + k * kVector;
      keep_order();
      next.take(at, mask, k);
      ask_ahead(next.row + at);
      ask_ahead(exponentials + at);
      if (before.row != nullptr) before.divide(at, mask);
      keep_order();
    };
    const Vectors<kCount> found = exponential_of_negative(scores - shift, neighbours);
    store(found, mask, exponentials + begin);
    if constexpr (kCount > 1) {
      for (int k = 0; k < kCount; ++k) add(exponentials + begin + k * kVector);
    } else {
      // Lanes after the last element add nothing.
      alignas(64) float lanes[kLanes];
      _mm512_store_ps(lanes, _mm512_maskz_mov_ps(mask, found.of[0]));
      add(lanes);
    }
  });
  alignas(64) double lanes[kLanes];
  __builtin_memcpy(lanes, &low, sizeof(low));
  __builtin_memcpy(lanes + kLanes / 2, &high, sizeof(high));
  combine_pairs<kLanes / 2>(lanes, [](double sum, double value) { return sum + value; });
  return lanes[0];
}

void softmax(const float* input, std::int64_t rows, std::int64_t channels, float* output) {
  if (rows == 0) return;
  // Each later row is read for its largest number while the row before it is written.
  LargestOfRow largest = {input};
  for_groups_of_row(channels, [&]<int kCount>(std::int64_t begin, __mmask16 mask) HOLDFAST_INLINED {
    for (int k = 0; k < kCount; ++k) largest.take(begin + k * kVector, mask, k);
  });
  RowDivision last = {};
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* const scores = input + row * channels;
    float* const result = output + row * channels;
    const float shift = softmax_shift(largest.found());
    // The last row has no row after it, and is read once more.
    largest = {row + 1 < rows ? scores + channels : scores};
    const double sum = write_exponentials(scores, channels, shift, last, largest, result);
    last = {result, softmax_divisor(sum)};
  }
  // No row follows the last one, so its division has nothing to run along with.
  for (std::int64_t begin = 0; begin < channels; begin += kVector) last.divide(begin, first_lanes(channels - begin));
}

#else

void softmax(const float* input, std::int64_t rows, std::int64_t channels, float* output) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const result = output + row * channels;
    RowTail tail;
    load_tail(input + row * channels, channels, tail);
    // The exponentials of the last group stay in the tail, which is stored once, when it is divided.
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
    // Added in double, and rounded once.
    const auto sum = static_cast<float>(sum_of_products(y, dy, channels));
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) dx[c] = y[c] * (dy[c] - sum);
  }
}

}  // namespace
}  // namespace holdfast::compute
