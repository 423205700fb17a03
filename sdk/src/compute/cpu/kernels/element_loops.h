#pragma once

// See vector_kernels.h. Each function of element programs has a loop of its own for each way its operands may come: an
// array, or one number for all elements.

#include "compute/arithmetic/element_functions.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

// With kMask bit i, operand i is one number.
template <ElementFunction kFunction, unsigned kMask>
void element_loop(const ElementLane* operands, std::int64_t count, float* result) {
  const float* const a = operands[0].values;
  const float* const b = operands[1].values;
  const float* const c = operands[2].values;
  // Loaded before the loop, whose stores could change it for all the compiler knows.
  const float one_a = (kMask & 1) != 0 ? *a : 0.0F;
  const float one_b = (kMask & 2) != 0 ? *b : 0.0F;
  const float one_c = (kMask & 4) != 0 ? *c : 0.0F;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    result[i] = element<kFunction>((kMask & 1) != 0 ? one_a : a[i], (kMask & 2) != 0 ? one_b : b[i],
                                   (kMask & 4) != 0 ? one_c : c[i]);
  }
}

template <ElementFunction kFunction>
void run_element_function(const ElementLane* operands, std::int64_t count, float* result) {
  const unsigned mask = (operands[0].is_scalar ? 1U : 0U) | (operands[1].is_scalar ? 2U : 0U);
  if constexpr (kFunction == ElementFunction::select) {
    switch (mask | (operands[2].is_scalar ? 4U : 0U)) {
      case 0:
        return element_loop<kFunction, 0>(operands, count, result);
      case 2:
        return element_loop<kFunction, 2>(operands, count, result);
      case 4:
        return element_loop<kFunction, 4>(operands, count, result);
      case 6:
        return element_loop<kFunction, 6>(operands, count, result);
      default:
        // One condition for all elements.
        const ElementLane& chosen = *operands[0].values != 0 ? operands[1] : operands[2];
        const ElementLane same[] = {chosen, chosen, chosen};
        return run_element_function<ElementFunction::copy>(same, count, result);
    }
  } else if constexpr (kFunction >= ElementFunction::add) {
    switch (mask) {
      case 0:
        return element_loop<kFunction, 0>(operands, count, result);
      case 1:
        return element_loop<kFunction, 1>(operands, count, result);
      case 2:
        return element_loop<kFunction, 2>(operands, count, result);
      default:
        return element_loop<kFunction, 3>(operands, count, result);
    }
  } else {
    if (mask == 0) return element_loop<kFunction, 0>(operands, count, result);
    const float value = element<kFunction>(*operands[0].values, 0, 0);
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) result[i] = value;
  }
}

struct RunElementFunction {
  const ElementLane* operands;
  std::int64_t count;
  float* result;

  template <ElementFunction kFunction>
  [[gnu::always_inline]] inline void run() const {
    run_element_function<kFunction>(operands, count, result);
  }
};

// `operands` are three; those that the function does not take are arrays that it may read.
void run_instruction(ElementFunction function, const ElementLane* operands, std::int64_t count, float* result) {
  visit_function(function, RunElementFunction{operands, count, result});
}

}  // namespace
}  // namespace holdfast::compute
