#pragma once

// Applies one function of values, such as a layer with its weights, to each step of a sequence
// (keras.layers.TimeDistributed):
//
//   const Conv2D filters{8, 3};
//   const Value x = input({12, 28, 28, 1});                       // twelve pictures
//   const Value features = time_distributed(filters, x);          // [12, 26, 26, 8]
//   const Value numbers = time_distributed([&](const Value& picture) { return Flatten{}(filters(picture)); }, x);
//
// The steps stand side by side in the model, so it grows with their number. Dense, activations and normalizations of
// the last axis take further axes by themselves, and are faster so. A BatchNormalization would normalize each step by
// itself.

#include <cstdint>
#include <vector>

#include "holdfast/nn/functions.h"
#include "holdfast/nn/value.h"

namespace holdfast {

// For the template below: step `index` of x without its first axis, and the steps along a new first axis. Throw
// Error{invalid_argument} for x without an axis.
Value step_of(const Value& x, std::int64_t index);
// See step_of().
Value stacked_steps(const std::vector<Value>& steps);

// `function(step)` for each element of the first axis of x, which has one or more, along the first axis of the result.
// Throws what it throws.
template <class Function>
Value time_distributed(const Function& function, const Value& x) {
  std::vector<Value> steps{function(step_of(x, 0))};
  for (std::int64_t step = 1; step < x.shape()[0]; ++step) steps.push_back(function(step_of(x, step)));
  return stacked_steps(steps);
}

}  // namespace holdfast
