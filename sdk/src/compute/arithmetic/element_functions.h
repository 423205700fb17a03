#pragma once

// The functions of element programs. They have one text for host and device, so that a formula cannot be changed in one
// of them alone. The function is a template parameter of element(), so that a loop over elements has no branch.

#include "compute/arithmetic/activations.h"
#include "compute/arithmetic/exponential.h"
#include "compute/array_kernels.h"
#include "core/host_device.h"

namespace holdfast::compute {

// log(1 + exp(x)) without overflow: max(x, 0) + log(1 + exp(-|x|)), whose exponential is at most 1.
HOLDFAST_HOST_DEVICE inline float softplus(float x) {
  return (x > 0 ? x : 0.0F) + logarithm_of_one_plus(exponential_of_negative(-absolute(x)));
}

// Formulas with names are in activations.h and exponential.h, since loops have other forms of some of them.
//
// Comparisons are written so that a NaN among the operands of minimum and maximum reaches the result. `less` and
// `equal` give 0 for a NaN, and for `select` a NaN is not 0 and so counts as true.
template <ElementFunction kFunction>
HOLDFAST_HOST_DEVICE inline float element(float a, float b, float c) {
  using enum ElementFunction;
  if constexpr (kFunction == copy) return a;
  if constexpr (kFunction == negative) return -a;
  if constexpr (kFunction == ElementFunction::absolute) return compute::absolute(a);
  if constexpr (kFunction == square) return a * a;
  if constexpr (kFunction == ElementFunction::square_root) return compute::square_root(a);
  // As a quotient: the device's own approximation of a reciprocal root has other bits than the host.
  if constexpr (kFunction == reciprocal_root) return 1 / compute::square_root(a);
  if constexpr (kFunction == ElementFunction::exponential) return compute::exponential(a);
  if constexpr (kFunction == ElementFunction::logarithm) return compute::logarithm(a);
  if constexpr (kFunction == relu) return Relu::value(a);
  if constexpr (kFunction == sigmoid) return Sigmoid::value(a);
  if constexpr (kFunction == tanh) return Tanh::value(a);
  if constexpr (kFunction == gelu) return Gelu::value(a);
  if constexpr (kFunction == gelu_tanh) return GeluTanh::value(a);
  if constexpr (kFunction == silu) return Silu::value(a);
  if constexpr (kFunction == ElementFunction::softplus) return compute::softplus(a);
  if constexpr (kFunction == gelu_slope) return Gelu::derivative(a);
  if constexpr (kFunction == gelu_tanh_slope) return GeluTanh::derivative(a);
  if constexpr (kFunction == silu_slope) return Silu::derivative(a);
  // The operand itself where it is neither: so the sign of NaN is NaN, and that of -0 is -0.
  if constexpr (kFunction == sign) return a > 0 ? 1.0F : a < 0 ? -1.0F : a;
  if constexpr (kFunction == add) return a + b;
  if constexpr (kFunction == subtract) return a - b;
  if constexpr (kFunction == multiply) return a * b;
  if constexpr (kFunction == divide) return a / b;
  if constexpr (kFunction == ElementFunction::power) return compute::power(a, b);
  if constexpr (kFunction == minimum) return a < b || a != a ? a : b;
  if constexpr (kFunction == maximum) return a > b || a != a ? a : b;
  if constexpr (kFunction == less) return a < b ? 1.0F : 0.0F;
  if constexpr (kFunction == less_equal) return a <= b ? 1.0F : 0.0F;
  if constexpr (kFunction == equal) return a == b ? 1.0F : 0.0F;
  if constexpr (kFunction == select) return a != 0 ? b : c;
}

// Calls visitor.template run<function>(), so that each function is compiled into a loop of its own.
template <class Visitor>
HOLDFAST_HOST_DEVICE inline void visit_function(ElementFunction function, const Visitor& visitor) {
  using enum ElementFunction;
  // Without a default, so that the compiler names a function that is missing here.
  switch (function) {
    case copy:
      return visitor.template run<copy>();
    case negative:
      return visitor.template run<negative>();
    case ElementFunction::absolute:
      return visitor.template run<ElementFunction::absolute>();
    case square:
      return visitor.template run<square>();
    case ElementFunction::square_root:
      return visitor.template run<ElementFunction::square_root>();
    case reciprocal_root:
      return visitor.template run<reciprocal_root>();
    case ElementFunction::exponential:
      return visitor.template run<ElementFunction::exponential>();
    case ElementFunction::logarithm:
      return visitor.template run<ElementFunction::logarithm>();
    case relu:
      return visitor.template run<relu>();
    case sigmoid:
      return visitor.template run<sigmoid>();
    case tanh:
      return visitor.template run<tanh>();
    case gelu:
      return visitor.template run<gelu>();
    case gelu_tanh:
      return visitor.template run<gelu_tanh>();
    case silu:
      return visitor.template run<silu>();
    case ElementFunction::softplus:
      return visitor.template run<ElementFunction::softplus>();
    case gelu_slope:
      return visitor.template run<gelu_slope>();
    case gelu_tanh_slope:
      return visitor.template run<gelu_tanh_slope>();
    case silu_slope:
      return visitor.template run<silu_slope>();
    case sign:
      return visitor.template run<sign>();
    case add:
      return visitor.template run<add>();
    case subtract:
      return visitor.template run<subtract>();
    case multiply:
      return visitor.template run<multiply>();
    case divide:
      return visitor.template run<divide>();
    case ElementFunction::power:
      return visitor.template run<ElementFunction::power>();
    case minimum:
      return visitor.template run<minimum>();
    case maximum:
      return visitor.template run<maximum>();
    case less:
      return visitor.template run<less>();
    case less_equal:
      return visitor.template run<less_equal>();
    case equal:
      return visitor.template run<equal>();
    case select:
      return visitor.template run<select>();
  }
}

}  // namespace holdfast::compute
