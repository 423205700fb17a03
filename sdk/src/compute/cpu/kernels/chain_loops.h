#pragma once

// See vector_kernels.h. Each sequence of functions has a loop of its own, which keeps what lies between them in
// registers. Elements are worked on in groups of kLanes, in which the sum has the order of lanes.h.
// docs/decisions/plans.md

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "compute/arithmetic/lanes.h"
#include "compute/cpu/kernels/loop_hints.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

// Vectors are named here, since compilers that make them of loops keep what lies between functions in memory.
constexpr int kChainVectors = static_cast<int>(kLanes) / kHostVectorFloats;  // of a group
typedef float ChainFloats __attribute__((vector_size(kHostVectorFloats * sizeof(float))));
typedef float ChainHalf __attribute__((vector_size(kHostVectorFloats / 2 * sizeof(float))));
typedef double ChainDoubles __attribute__((vector_size(kHostVectorFloats / 2 * sizeof(double))));

// The lanes of a group, and their sums.
struct ChainValues {
  ChainFloats of[kChainVectors];
};
struct ChainLanes {
  ChainDoubles low[kChainVectors];
  ChainDoubles high[kChainVectors];
};

// Arrays may begin at any float, so vectors are copied and not dereferenced.
[[gnu::always_inline]] inline void load_group(const float* from, ChainValues& to) {
  for (int i = 0; i < kChainVectors; ++i)
    __builtin_memcpy(&to.of[i], from + i * kHostVectorFloats, sizeof(ChainFloats));
}

[[gnu::always_inline]] inline void store_group(const ChainValues& from, float* to) {
  for (int i = 0; i < kChainVectors; ++i)
    __builtin_memcpy(to + i * kHostVectorFloats, &from.of[i], sizeof(ChainFloats));
}

[[gnu::always_inline]] inline ChainDoubles as_doubles(const ChainHalf& half) {
  // g++ 12 makes four instructions of a conversion that is one.
#if defined(__AVX512F__)
  return _mm512_maskz_cvtps_pd(0xFF, half);  // the plain one has an uninitialised operand in g++ 12
#elif defined(__AVX2__)
  return _mm256_cvtps_pd(half);
#else
  return __builtin_convertvector(half, ChainDoubles);
#endif
}

// Halves, because a vector holds half as many doubles as floats.
[[gnu::always_inline]] inline void add_group(const ChainValues& values, ChainLanes& lanes) {
  for (int i = 0; i < kChainVectors; ++i) {
    ChainHalf halves[2];
    __builtin_memcpy(halves, &values.of[i], sizeof(halves));
    lanes.low[i] += as_doubles(halves[0]);
    lanes.high[i] += as_doubles(halves[1]);
  }
}

[[gnu::always_inline]] inline void load_lanes(const double* from, ChainLanes& to) {
  for (int i = 0; i < kChainVectors; ++i) {
    __builtin_memcpy(&to.low[i], from + i * kHostVectorFloats, sizeof(ChainDoubles));
    __builtin_memcpy(&to.high[i], from + i * kHostVectorFloats + kHostVectorFloats / 2, sizeof(ChainDoubles));
  }
}

[[gnu::always_inline]] inline void store_lanes(const ChainLanes& from, double* to) {
  for (int i = 0; i < kChainVectors; ++i) {
    __builtin_memcpy(to + i * kHostVectorFloats, &from.low[i], sizeof(ChainDoubles));
    __builtin_memcpy(to + i * kHostVectorFloats + kHostVectorFloats / 2, &from.high[i], sizeof(ChainDoubles));
  }
}

constexpr ElementFunction kChainFunctions[] = {ElementFunction::add, ElementFunction::subtract,
                                               ElementFunction::multiply};
constexpr int kChainFunctionCount = 3;

// The place of a function in kChainFunctions. The digits of a chain form the number of its loop.
constexpr int chain_digit(ElementFunction function) {
  return function == ElementFunction::add ? 0 : function == ElementFunction::subtract ? 1 : 2;
}

// values = function(values, operand), which is also written to `wanted` unless that is null.
template <ElementFunction kFunction>
[[gnu::always_inline]] inline void chain_link(const float* operand, float* wanted, ChainValues& values) {
  ChainValues other;
  load_group(operand, other);
  for (int i = 0; i < kChainVectors; ++i) {
    if constexpr (kFunction == ElementFunction::add) values.of[i] = values.of[i] + other.of[i];
    if constexpr (kFunction == ElementFunction::subtract) values.of[i] = values.of[i] - other.of[i];
    if constexpr (kFunction == ElementFunction::multiply) values.of[i] = values.of[i] * other.of[i];
  }
  if (wanted != nullptr) store_group(values, wanted);
}

// What is added up.
template <ChainSum kSum>
[[gnu::always_inline]] inline void make_summands(const float* factor, ChainValues& values) {
  ChainValues other;
  if constexpr (kSum == ChainSum::products) load_group(factor, other);
  for (int i = 0; i < kChainVectors; ++i) {
    if constexpr (kSum == ChainSum::squares) values.of[i] = values.of[i] * values.of[i];
    if constexpr (kSum == ChainSum::products) values.of[i] = values.of[i] * other.of[i];
    if constexpr (kSum == ChainSum::negatives) values.of[i] = -values.of[i];
  }
}

// A group of each array. Operands that are one number are repeated in a group of their own.
struct ChainGroup {
  const float* first;
  const float* operands[ElementChain::kMaximumLength];
  const float* factor;
  float* results[ElementChain::kMaximumLength];
};

// Digit i of kFunctions, to the base of kChainFunctionCount, is function i. Leaves what is added up.
template <int kLength, int kFunctions, ChainSum kSum>
[[gnu::always_inline]] inline void chain_group(const ChainGroup& group, ChainValues& values) {
  load_group(group.first, values);
  chain_link<kChainFunctions[kFunctions % 3]>(group.operands[0], group.results[0], values);
  if constexpr (kLength > 1) {
    chain_link<kChainFunctions[kFunctions / 3 % 3]>(group.operands[1], group.results[1], values);
  }
  if constexpr (kLength > 2) {
    chain_link<kChainFunctions[kFunctions / 9]>(group.operands[2], group.results[2], values);
  }
  if constexpr (kSum != ChainSum::none) make_summands<kSum>(group.factor, values);
}

// The group at an element, with a distance of 0 where an operand is one number.
template <int kLength>
[[gnu::always_inline]] inline ChainGroup group_at(const ChainGroup& from, const std::int64_t* steps, std::int64_t i) {
  ChainGroup group = {};
  group.first = from.first + i * steps[0];
  group.factor = from.factor == nullptr ? nullptr : from.factor + i;
  for (int k = 0; k < kLength; ++k) {
    group.operands[k] = from.operands[k] + i * steps[k + 1];
    group.results[k] = from.results[k] == nullptr ? nullptr : from.results[k] + i;
  }
  return group;
}

// Sets values[i] = function(values[i], operand[i]) for fewer elements than a group.
void chain_link_of_few(ElementFunction function, const float* operand, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; ++i) {
    switch (function) {
      case ElementFunction::add:
        values[i] = values[i] + operand[i];
        break;
      case ElementFunction::subtract:
        values[i] = values[i] - operand[i];
        break;
      default:
        values[i] = values[i] * operand[i];
    }
  }
}

// The last elements, fewer than a group. One function for all chains: they are few. `sums` are those of lanes.
void chain_tail(const ChainGroup& rest, int length, int functions, ChainSum sum, std::int64_t count, double* sums) {
  alignas(64) float values[kLanes];
  for (std::int64_t i = 0; i < count; ++i) values[i] = rest.first[i];
  for (int k = 0; k < length; ++k, functions /= kChainFunctionCount) {
    chain_link_of_few(kChainFunctions[functions % kChainFunctionCount], rest.operands[k], count, values);
    if (rest.results[k] == nullptr) continue;
    for (std::int64_t i = 0; i < count; ++i) rest.results[k][i] = values[i];
  }
  for (std::int64_t i = 0; i < count; ++i) {
    float summand = values[i];
    if (sum == ChainSum::squares) summand = values[i] * values[i];
    if (sum == ChainSum::products) summand = values[i] * rest.factor[i];
    if (sum == ChainSum::negatives) summand = -values[i];
    // Element i is in lane i, as in a whole group.
    sums[i] += summand;
  }
}

template <int kLength, int kFunctions, ChainSum kSum>
double chain_loop(const ElementChain& chain, std::int64_t count) {
  alignas(64) float repeated[ElementChain::kMaximumLength + 1][kLanes];
  std::int64_t steps[ElementChain::kMaximumLength + 1] = {};
  // One number for all elements becomes a group that the loop never leaves, so the loop has a single form.
  const auto place_of = [&](const ElementLane& lane, int number) -> const float* {
    steps[number] = lane.is_scalar ? 0 : 1;
    if (!lane.is_scalar) return lane.values;
    for (float& one : repeated[number]) one = *lane.values;
    return repeated[number];
  };
  ChainGroup all = {};
  all.first = place_of(chain.first, 0);
  all.factor = chain.factor;
  for (int k = 0; k < kLength; ++k) {
    all.operands[k] = place_of(chain.operands[k], k + 1);
    all.results[k] = chain.results[k];
  }
  ChainLanes lanes = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    ChainValues values;
    chain_group<kLength, kFunctions, kSum>(group_at<kLength>(all, steps, i), values);
    if constexpr (kSum != ChainSum::none) add_group(values, lanes);
  }
  alignas(64) double sums[kLanes];
  // The tail is added to the lanes before they are combined, since lanes.h has one order for any length.
  store_lanes(lanes, sums);
  if (i < count) {
    chain_tail(group_at<kLength>(all, steps, i), kLength, kFunctions, kSum, count - i, sums);
  }
  combine_pairs<kLanes / 2>(sums, [](double sum, double value) { return sum + value; });
  return sums[0];
}

// The loop of the functions with this number.
template <int kLength, ChainSum kSum, int kFunctions = 0>
ChainLoop chain_loop_of(int functions) {
  constexpr int kCount = kLength == 1 ? 3 : kLength == 2 ? 9 : 27;
  // The number is known when the program runs, and each loop is a template, so they are tried one by one.
  if (functions == kFunctions) return chain_loop<kLength, kFunctions, kSum>;
  if constexpr (kFunctions + 1 < kCount) return chain_loop_of<kLength, kSum, kFunctions + 1>(functions);
  return nullptr;
}

template <int kLength>
ChainLoop chain_loop_of_sum(ChainSum sum, int functions) {
  switch (sum) {
    case ChainSum::none:
      return chain_loop_of<kLength, ChainSum::none>(functions);
    case ChainSum::values:
      return chain_loop_of<kLength, ChainSum::values>(functions);
    case ChainSum::squares:
      return chain_loop_of<kLength, ChainSum::squares>(functions);
    case ChainSum::products:
      return chain_loop_of<kLength, ChainSum::products>(functions);
    case ChainSum::negatives:
      return chain_loop_of<kLength, ChainSum::negatives>(functions);
  }
  return nullptr;
}

ChainLoop find_chain(const ElementFunction* functions, int length, ChainSum sum) {
  int number = chain_digit(functions[0]);
  if (length > 1) number += kChainFunctionCount * chain_digit(functions[1]);
  if (length > 2) number += kChainFunctionCount * kChainFunctionCount * chain_digit(functions[2]);
  if (length == 1) return chain_loop_of_sum<1>(sum, number);
  if (length == 2) return chain_loop_of_sum<2>(sum, number);
  // Three functions have no sum, and nobody asks for one (vector_kernels.h).
  return chain_loop_of<3, ChainSum::none>(number);
}

// Columns in groups, whose sums are read and written once for all rows.
template <bool kIsProduct>
void add_rows_of(const float* a, const float* b, std::int64_t rows, std::int64_t columns, double* sums) {
  std::int64_t begin = 0;
  for (; begin + kLanes <= columns; begin += kLanes) {
    ChainLanes lanes;
    load_lanes(sums + begin, lanes);
    for (std::int64_t row = 0; row < rows; ++row) {
      ChainValues values;
      load_group(a + row * columns + begin, values);
      if constexpr (kIsProduct) make_summands<ChainSum::products>(b + row * columns + begin, values);
      add_group(values, lanes);
    }
    store_lanes(lanes, sums + begin);
  }
  // Products are rounded to f32 before they are added, as in the groups.
  for (; begin < columns; ++begin) {
    for (std::int64_t i = begin; i < rows * columns; i += columns) sums[begin] += kIsProduct ? a[i] * b[i] : a[i];
  }
}

void add_rows(const float* a, const float* b, std::int64_t rows, std::int64_t columns, double* sums) {
  return b == nullptr ? add_rows_of<false>(a, b, rows, columns, sums) : add_rows_of<true>(a, b, rows, columns, sums);
}

}  // namespace
}  // namespace holdfast::compute
