#pragma once

// Bins of numbers, as a function of values (keras.layers.Discretization with given boundaries and the output mode
// "one_hot"). It becomes operations of the model, so a savepoint holds the boundaries, and a program that predicts
// gives it plain numbers:
//
//   const Value age = input({1});
//   const Value group = Dense{8}(discretize(age, {18, 30, 65}));   // of four numbers, one of which is 1
//
// The boundaries b rise. A number x falls into bin i if b_(i-1) <= x < b_i, so there is one bin more than boundaries. A
// NaN falls into the last one, as in Keras. No gradient passes.

#include <vector>

#include "holdfast/nn/value.h"

namespace holdfast {

// 1 at the place of the bin and 0 at the others, f32, along a new last axis. A last axis of one element becomes that
// axis. Throws Error{invalid_argument} unless there are 1 to 256 boundaries that rise and are finite, and for x of
// integers.
Value discretize(const Value& x, const std::vector<float>& boundaries);

}  // namespace holdfast
