#pragma once

// See vector_kernels.h. Each sequence of functions has a loop of its own, which keeps what lies between them in
// registers. Elements are worked on in groups of kLanes, in which the sum has the order of lanes.h.
// docs/decisions/plans.md

#include "compute/cpu/kernels/lane_sums.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

constexpr ElementFunction kChainFunctions[] = {ElementFunction::add, ElementFunction::subtract,
                                               ElementFunction::multiply};
constexpr int kChainFunctionCount = 3;

// The place of a function in kChainFunctions. The digits of a chain form the number of its loop.
constexpr int chain_digit(ElementFunction function) {
  return function == ElementFunction::add ? 0 : function == ElementFunction::subtract ? 1 : 2;
}

// values = function(values, operand), which is also written to `wanted` unless that is null.
template <ElementFunction kFunction>
[[gnu::always_inline]] inline void chain_link(const float* operand, float* wanted, GroupOfLanes& values) {
  GroupOfLanes other;
  load_group(operand, other);
  for (int i = 0; i < kGroupVectors; ++i) {
    if constexpr (kFunction == ElementFunction::add) values.of[i] = values.of[i] + other.of[i];
    if constexpr (kFunction == ElementFunction::subtract) values.of[i] = values.of[i] - other.of[i];
    if constexpr (kFunction == ElementFunction::multiply) values.of[i] = values.of[i] * other.of[i];
  }
  if (wanted != nullptr) store_group(values, wanted);
}

// What is added up.
template <ChainSum kSum>
[[gnu::always_inline]] inline void make_summands(const float* factor, GroupOfLanes& values) {
  GroupOfLanes other;
  if constexpr (kSum == ChainSum::products) load_group(factor, other);
  for (int i = 0; i < kGroupVectors; ++i) {
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
[[gnu::always_inline]] inline void chain_group(const ChainGroup& group, GroupOfLanes& values) {
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

// A row of each array, and the sum of the last result.
template <int kLength, int kFunctions, ChainSum kSum>
[[gnu::always_inline]] inline double chain_row(const ElementChain& chain, std::int64_t row) {
  alignas(64) float repeated[ElementChain::kMaximumLength + 1][kLanes];
  std::int64_t steps[ElementChain::kMaximumLength + 1] = {};
  // One number for all elements becomes a group that the loop never leaves, so the loop has a single form.
  const auto place_of = [&](const OperandRows& operand, int number) -> const float* {
    const float* const values = operand.values + row * operand.row_stride;
    steps[number] = operand.is_scalar ? 0 : 1;
    if (!operand.is_scalar) return values;
    repeat(*values, repeated[number]);
    return repeated[number];
  };
  const std::int64_t begin = row * chain.width;
  ChainGroup all = {};
  all.first = place_of(chain.first, 0);
  if constexpr (kSum == ChainSum::products) all.factor = chain.factor.values + row * chain.factor.row_stride;
  for (int k = 0; k < kLength; ++k) {
    all.operands[k] = place_of(chain.operands[k], k + 1);
    all.results[k] = chain.results[k] == nullptr ? nullptr : chain.results[k] + begin;
  }
  // Where there is nothing to ask for, what is read anyway. (If that is one number, some lines of the stack.)
  const auto ahead_of = [&](int k) {
    return chain.ahead[k] == nullptr ? address_of(all.first, 0) : address_of(chain.ahead[k], begin);
  };
  const std::uintptr_t ahead = ahead_of(0);
  const std::uintptr_t more_ahead = ahead_of(1);
  LaneSums lanes;
  clear(lanes);
  std::int64_t i = 0;
  for (; i + kLanes <= chain.width; i += kLanes) {
    ask_second_cache(ahead + static_cast<std::uintptr_t>(i) * sizeof(float));
    ask_second_cache(more_ahead + static_cast<std::uintptr_t>(i) * sizeof(float));
    GroupOfLanes values;
    chain_group<kLength, kFunctions, kSum>(group_at<kLength>(all, steps, i), values);
    if constexpr (kSum != ChainSum::none) add_group(values, lanes);
  }
  // The tail is added to the lanes before they are combined, since lanes.h has one order for any length.
  if (i < chain.width) {
    alignas(64) double sums[kLanes];
    store_lanes(lanes, sums);
    chain_tail(group_at<kLength>(all, steps, i), kLength, kFunctions, kSum, chain.width - i, sums);
    load_lanes(sums, lanes);
  }
  return kSum == ChainSum::none ? 0 : sum_of_lanes(lanes);
}

template <int kLength, int kFunctions, ChainSum kSum>
void chain_loop(const ElementChain& chain) {
  for (std::int64_t row = 0; row < chain.rows; ++row) {
    const double sum = chain_row<kLength, kFunctions, kSum>(chain, row);
    if constexpr (kSum != ChainSum::none) chain.sums[row] = static_cast<float>(sum / chain.divisor);
  }
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
void add_rows_of(const float* a, const float* b, std::int64_t rows, std::int64_t columns, bool are_more_read,
                 double* sums) {
  const std::int64_t ahead = are_more_read ? rows * columns : 0;
  std::int64_t begin = 0;
  for (; begin + kLanes <= columns; begin += kLanes) {
    LaneSums lanes;
    load_lanes(sums + begin, lanes);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns + begin;
      ask_second_cache(address_of(a, at + ahead));
      if constexpr (kIsProduct) ask_second_cache(address_of(b, at + ahead));
      GroupOfLanes values;
      load_group(a + at, values);
      if constexpr (kIsProduct) make_summands<ChainSum::products>(b + at, values);
      add_group(values, lanes);
    }
    store_lanes(lanes, sums + begin);
  }
  // Products are rounded to f32 before they are added, as in the groups.
  for (; begin < columns; ++begin) {
    for (std::int64_t i = begin; i < rows * columns; i += columns) sums[begin] += kIsProduct ? a[i] * b[i] : a[i];
  }
}

void add_rows(const float* a, const float* b, std::int64_t rows, std::int64_t columns, bool are_more_read,
              double* sums) {
  return b == nullptr ? add_rows_of<false>(a, b, rows, columns, are_more_read, sums)
                      : add_rows_of<true>(a, b, rows, columns, are_more_read, sums);
}

}  // namespace
}  // namespace holdfast::compute
