#pragma once

// The moving averages of parameters (weight_average.h) as one more slot of an optimizer.

#include <memory>
#include <string>
#include <vector>

#include "holdfast/optim/optimizer.h"

namespace holdfast {

// The slots of the state: those of the optimizer, then that of the averages if it keeps them. Throws
// Error{invalid_argument} for an optimizer with a slot of that name.
std::vector<std::string> slots_of(const Optimizer& optimizer);

// An optimizer whose parameters are the averages, and whose gradients are the parameters. Null if none are kept.
std::unique_ptr<Optimizer> averaging_of(const WeightAverage& average);

}  // namespace holdfast
