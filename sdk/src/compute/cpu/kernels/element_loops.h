#pragma once

// See vector_kernels.h. Each function of element programs has a loop of its own for each way its operands may come: an
// array, or one number for all elements.

#include "compute/arithmetic/element_functions.h"
#include "compute/cpu/kernels/activation_loops.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

// ElementFunction has functions of one operand first, then those of two, and `select` last.
constexpr int operands_of(ElementFunction function) {
  return function == ElementFunction::select ? 3 : function >= ElementFunction::add ? 2 : 1;
}

// With bit i of kMask, operand i is one number. Operands that the function does not take are not read.
template <ElementFunction kFunction, unsigned kMask>
void element_loop(const ElementLane* operands, std::int64_t count, float* result) {
  constexpr int kTaken = operands_of(kFunction);
  const float* const a = operands[0].values;
  // No lane may follow those that the function takes: `select` passes on the last of its three.
  const float* const b = kTaken > 1 ? operands[1].values : nullptr;
  const float* const c = kTaken > 2 ? operands[2].values : nullptr;
  // Loaded before the loop, whose stores could change it for all the compiler knows.
  const float one_a = (kMask & 1) != 0 ? *a : 0.0F;
  const float one_b = kTaken > 1 && (kMask & 2) != 0 ? *b : 0.0F;
  const float one_c = kTaken > 2 && (kMask & 4) != 0 ? *c : 0.0F;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    result[i] = element<kFunction>((kMask & 1) != 0 ? one_a : a[i], kTaken < 2 || (kMask & 2) != 0 ? one_b : b[i],
                                   kTaken < 3 || (kMask & 4) != 0 ? one_c : c[i]);
  }
}

// Functions of one array that activation_loops.h has loops for.
template <ElementFunction kFunction>
void function_loop(const ElementLane* operands, std::int64_t count, float* result) {
  using enum ElementFunction;
  const float* const a = operands[0].values;
  if constexpr (kFunction == gelu) return activation_forward<Gelu>(a, result, count);
  if constexpr (kFunction == tanh) return activation_forward<Tanh>(a, result, count);
  if constexpr (kFunction == sigmoid) return activation_forward<Sigmoid>(a, result, count);
  if constexpr (kFunction == gelu_tanh) return activation_forward<GeluTanh>(a, result, count);
  if constexpr (kFunction == silu) return activation_forward<Silu>(a, result, count);
  if constexpr (kFunction == gelu_slope) return activation_slope<Gelu>(a, result, count);
  if constexpr (kFunction == gelu_tanh_slope) return activation_slope<GeluTanh>(a, result, count);
  if constexpr (kFunction == silu_slope) return activation_slope<Silu>(a, result, count);
  element_loop<kFunction, 0>(operands, count, result);
}

template <ElementFunction kFunction>
void run_element_function(const ElementLane* operands, std::int64_t count, float* result) {
  constexpr int kTaken = operands_of(kFunction);
  unsigned mask = 0;
  for (int i = 0; i < kTaken; ++i) mask |= operands[i].is_scalar ? 1U << i : 0U;
  // The mask is known when the program runs, and a loop is compiled for each, so that no element asks for it.
  if constexpr (kTaken == 1) {
    return mask == 0 ? function_loop<kFunction>(operands, count, result)
                     : element_loop<kFunction, 1>(operands, count, result);
  } else if constexpr (kTaken == 2) {
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
    switch (mask) {
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
        return run_element_function<ElementFunction::copy>(*operands[0].values != 0 ? &operands[1] : &operands[2],
                                                           count, result);
    }
  }
}

// What visit_function() calls with the function as a constant.
struct RunElementFunction {
  const ElementLane* operands;
  std::int64_t count;
  float* result;

  template <ElementFunction kFunction>
  [[gnu::always_inline]] inline void run() const {
    run_element_function<kFunction>(operands, count, result);
  }
};

void run_instruction(ElementFunction function, const ElementLane* operands, std::int64_t count, float* result) {
  visit_function(function, RunElementFunction{operands, count, result});
}

}  // namespace
}  // namespace holdfast::compute
