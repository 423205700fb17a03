#pragma once

// Gradients that are too large, made smaller before an optimizer gets them, as the optimizers of Keras do:
//
//   value:        each element g becomes min(max(g, -value), value)
//   norm:         each parameter array's gradient g becomes g norm / |g| where |g| = sqrt(sum of squares) > norm
//   global_norm:  the same with one |g| over all arrays
//
// A norm is a sum in double, in an order that depends on the array's size alone: replicas, threads and devices give the
// same bits. What is not a number stays so, and where a norm is not finite, nothing is clipped: WhenNotFinite has been
// asked before what becomes of such a step.

#include <optional>

namespace holdfast {

// At most one of them, positive.
struct GradientClipping {
  std::optional<float> value{};
  std::optional<float> norm{};
  std::optional<float> global_norm{};
};

}  // namespace holdfast
