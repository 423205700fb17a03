#pragma once

// See vector_kernels.h.

#include "compute/arithmetic/element_functions.h"
#include "compute/arithmetic/gradient_clipping.h"
#include "compute/arithmetic/optimizers.h"
#include "compute/arithmetic/update_rules.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

void adam(const AdamStep& step, std::int64_t count, const float* gradients, float* parameters, float* m, float* v) {
  // A local copy: the compiler need not fear that a store below changes it.
  const AdamStep same = step;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) adam_element(same, gradients[i], parameters[i], m[i], v[i]);
}

void sgd(const SgdStep& step, std::int64_t count, const float* gradients, float* parameters, float* velocity) {
  const float rate = step.learning_rate;
  const float momentum = step.momentum;
  if (velocity == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) sgd_element(rate, gradients[i], parameters[i]);
  } else if (step.nesterov) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      nesterov_element(rate, momentum, gradients[i], parameters[i], velocity[i]);
    }
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      momentum_element(rate, momentum, gradients[i], parameters[i], velocity[i]);
    }
  }
}

// Squares that are added in the order of the elements, so that each addition waits for the one before it.
struct LambSquares {
  static constexpr std::int64_t kTogether = 16;

  double parameters[kTogether] = {};
  double directions[kTogether] = {};
};

HOLDFAST_HOST_DEVICE inline void lamb_squares(const LambStep& step, std::int64_t count, const float* gradients,
                                              const float* parameters, float* momenta, float* velocities,
                                              LambSquares& squares) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    lamb_slots(step, gradients[i], momenta[i], velocities[i]);
    const double direction = static_cast<double>(lamb_direction(step, momenta[i], velocities[i]));
    const double parameter = static_cast<double>(parameters[i] * step.kept);
    squares.directions[i] = direction * direction;
    squares.parameters[i] = parameter * parameter;
  }
}

HOLDFAST_HOST_DEVICE inline void add_squares(const LambSquares& squares, std::int64_t count, LambSums& sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    sums.parameters += squares.parameters[i];
    sums.directions += squares.directions[i];
  }
}

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
// A processor with vectors of 512 bits in flight adds two doubles more slowly, and the additions take the most time:
// 1.35 ns an element, and 0.96 ns with 256 bits (Intel Xeon with AMX, 2026-11-27).
#define HOLDFAST_VECTORS_OF_256_BITS __attribute__((target("prefer-vector-width=256")))
#else
#define HOLDFAST_VECTORS_OF_256_BITS
#endif

// While the squares of a block are added, those of the next one are computed, and memory for later ones is on its way.
HOLDFAST_VECTORS_OF_256_BITS void lamb_slots_of_all(const LambStep& step, std::int64_t count, const float* gradients,
                                                    const float* parameters, float* momenta, float* velocities,
                                                    LambSums& sums) {
  constexpr std::int64_t kTogether = LambSquares::kTogether;
  constexpr std::int64_t kAhead = 512;  // elements; the additions leave the processor no place to look as far itself
  const LambStep same = step;
  LambSums own = sums;
  LambSquares squares[2];
  std::int64_t begin = 0;
  int now = 0;
  for (; begin + kTogether <= count; begin += kTogether) {
    // Beyond the end nothing happens.
    for (const float* const array :
         {gradients, parameters, static_cast<const float*>(momenta), static_cast<const float*>(velocities)}) {
      __builtin_prefetch(array + begin + kAhead);
    }
    lamb_squares(same, kTogether, gradients + begin, parameters + begin, momenta + begin, velocities + begin,
                 squares[now]);
    now = 1 - now;
    // Zeros before the first block, which change no sum of squares.
    add_squares(squares[now], kTogether, own);
  }
  add_squares(squares[1 - now], kTogether, own);
  lamb_squares(same, count - begin, gradients + begin, parameters + begin, momenta + begin, velocities + begin,
               squares[now]);
  add_squares(squares[now], count - begin, own);
  sums = own;
}

#undef HOLDFAST_VECTORS_OF_256_BITS

void lamb_parameters(const LambStep& step, float scale, std::int64_t count, const float* momenta,
                     const float* velocities, float* parameters) {
  const LambStep same = step;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    parameters[i] = parameters[i] * same.kept - scale * lamb_direction(same, momenta[i], velocities[i]);
  }
}

// The functions of element programs, as formulas of rules call them.
struct RuleFunctions {
  HOLDFAST_HOST_DEVICE static float square(float x) { return element<ElementFunction::square>(x, 0, 0); }
  HOLDFAST_HOST_DEVICE static float square_root(float x) { return element<ElementFunction::square_root>(x, 0, 0); }
  HOLDFAST_HOST_DEVICE static float sign(float x) { return element<ElementFunction::sign>(x, 0, 0); }
  HOLDFAST_HOST_DEVICE static float absolute(float x) { return element<ElementFunction::absolute>(x, 0, 0); }
  HOLDFAST_HOST_DEVICE static float maximum(float a, float b) { return element<ElementFunction::maximum>(a, b, 0); }
  HOLDFAST_HOST_DEVICE static float decayed(float parameter, float kept) { return parameter * kept; }
};

template <UpdateRule kRule>
void rule_loop(const float* numbers, float kept, std::int64_t count, const float* gradients, float* parameters,
               float* const* slots) {
  using Formula = RuleFormula<kRule>;
  float n[kMostRuleNumbers] = {};
  for (int i = 0; i < Formula::kNumbers; ++i) n[i] = numbers[i];
  float* const first = slots[0];
  float* const second = Formula::kSlots > 1 ? slots[1] : nullptr;
  float* const third = Formula::kSlots > 2 ? slots[2] : nullptr;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    RuleElement<float> of = {parameters[i], gradients[i], {first[i], 0, 0}};
    if constexpr (Formula::kSlots > 1) of.slots[1] = second[i];
    if constexpr (Formula::kSlots > 2) of.slots[2] = third[i];
    Formula::template update<RuleFunctions>(of, n, kept);
    parameters[i] = of.parameter;
    first[i] = of.slots[0];
    if constexpr (Formula::kSlots > 1) second[i] = of.slots[1];
    if constexpr (Formula::kSlots > 2) third[i] = of.slots[2];
  }
}

double chunk_squares(const float* values, std::size_t count) {
  return squares_of_chunk(values, count);
}

void clip_values(const float* gradients, std::int64_t count, float limit, float* clipped) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) clipped[i] = clipped_value(gradients[i], limit);
}

void scaled(const float* array, std::int64_t count, float factor, float* result) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) result[i] = array[i] * factor;
}

}  // namespace
}  // namespace holdfast::compute
