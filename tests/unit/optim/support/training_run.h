#pragma once

// A hundred steps of an optimizer in float, next to the same formulas in double.

#include <cstdint>
#include <functional>
#include <vector>

#include "holdfast/optim/optimizer.h"

namespace holdfast {

inline constexpr double kHalfUlp = 0x1p-24;  // relative error of one rounding in float

// One element of parameter and slots, in double.
struct ReferenceElement {
  double parameter = 0;
  std::vector<double> slots;
};

// Changes the element for a step (from 1) and its gradient.
using ReferenceUpdate = std::function<void(std::int64_t step, double gradient, ReferenceElement& element)>;

struct Deviation {
  double parameter = 0;  // the largest |float - double| over all elements and steps
  double largest_parameter = 0;
};

// Runs steps over elements that begin in (-1, 1), with gradients in (-1, 1) that depend only on the step and the
// element.
Deviation largest_deviation(const Optimizer& optimizer, const ReferenceUpdate& reference);

}  // namespace holdfast
