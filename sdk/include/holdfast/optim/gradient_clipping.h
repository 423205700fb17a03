#pragma once

// Limits for gradients that are too large, applied before an optimizer sees them, as the optimizers of Keras do:
//
//   value:        each element g becomes min(max(g, -value), value)
//   norm:         the gradient g of each parameter array becomes g norm / |g| if |g| > norm,
//                 with |g| = sqrt(sum of squares)
//   global_norm:  the same with one |g| over all arrays
//
// A norm is a sum in double, in an order that depends only on the size of the array. So replicas,
// threads and devices compute the same bits. A NaN stays a NaN, and a norm that is not finite clips
// nothing: by then WhenNotFinite has decided about such a step.

#include <optional>

namespace holdfast {

// At most one of these is set, to a positive number.
struct GradientClipping {
  std::optional<float> value{};        // the largest size of an element
  std::optional<float> norm{};         // the largest L2 norm of an array
  std::optional<float> global_norm{};  // the largest L2 norm of all arrays together
};

}  // namespace holdfast
