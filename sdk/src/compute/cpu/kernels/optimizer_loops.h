#pragma once

// See vector_kernels.h. The formulas are those of compute/arithmetic/, which are for devices as well. Here they get
// loops that the compiler can turn into vectors.

#include "compute/arithmetic/element_functions.h"
#include "compute/arithmetic/gradient_clipping.h"
#include "compute/arithmetic/lanes.h"
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
  // A loop for each rule, so that no element asks which one it is.
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

// Roots and divisions leave the processor no place to look far ahead itself, so memory for later elements is asked for.
// Beyond the end of an array nothing happens.
template <class... Arrays>
void fetch_ahead(std::int64_t begin, const Arrays*... arrays) {
  constexpr std::int64_t kAhead = 512;
  (__builtin_prefetch(arrays + begin + kAhead), ...);
}

// Sums of squares in the order of lanes.h.
struct LambLanes {
  double parameters[kLanes] = {};
  double directions[kLanes] = {};
};

// Up to kLanes elements, one for each lane.
HOLDFAST_HOST_DEVICE inline void lamb_lanes(const LambStep& step, std::int64_t count, const float* gradients,
                                            const float* parameters, float* momenta, float* velocities,
                                            LambLanes& lanes) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    lamb_slots(step, gradients[i], momenta[i], velocities[i]);
    const double direction = static_cast<double>(lamb_direction(step, momenta[i], velocities[i]));
    const double parameter = static_cast<double>(parameters[i] * step.kept);
    lanes.directions[i] += direction * direction;
    lanes.parameters[i] += parameter * parameter;
  }
}

LambSums lamb_slots_of_all(const LambStep& step, std::int64_t count, const float* gradients, const float* parameters,
                           float* momenta, float* velocities) {
  const LambStep same = step;
  LambLanes lanes;
  std::int64_t begin = 0;
  for (; begin + kLanes <= count; begin += kLanes) {
    fetch_ahead(begin, gradients, parameters, momenta, velocities);
    lamb_lanes(same, kLanes, gradients + begin, parameters + begin, momenta + begin, velocities + begin, lanes);
  }
  // Fewer than kLanes elements are left. They are added to the first lanes.
  lamb_lanes(same, count - begin, gradients + begin, parameters + begin, momenta + begin, velocities + begin, lanes);
  const auto add = [](double sum, double value) { return sum + value; };
  combine_pairs<kLanes / 2>(lanes.parameters, add);
  combine_pairs<kLanes / 2>(lanes.directions, add);
  return {.parameters = lanes.parameters[0], .directions = lanes.directions[0]};
}

void lamb_parameters(const LambStep& step, float scale, std::int64_t count, const float* momenta,
                     const float* velocities, float* parameters) {
  const LambStep same = step;
  // In pieces, so that memory is asked for ahead of each.
  const auto move = [&](std::int64_t begin, std::int64_t some) {
#pragma omp simd
    for (std::int64_t i = begin; i < begin + some; ++i) {
      parameters[i] = parameters[i] * same.kept - scale * lamb_direction(same, momenta[i], velocities[i]);
    }
  };
  std::int64_t begin = 0;
  for (; begin + kLanes <= count; begin += kLanes) {
    fetch_ahead(begin, momenta, velocities, parameters);
    move(begin, kLanes);
  }
  move(begin, count - begin);
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
  // Copies, as in adam().
  float n[kMostRuleNumbers] = {};
  for (int i = 0; i < Formula::kNumbers; ++i) n[i] = numbers[i];
  float* const first = slots[0];
  float* const second = Formula::kSlots > 1 ? slots[1] : nullptr;
  float* const third = Formula::kSlots > 2 ? slots[2] : nullptr;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    RuleElement<float> of = {parameters[i], gradients[i], {first[i], 0, 0}};
    // The other arrays are null in a rule of fewer slots.
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
