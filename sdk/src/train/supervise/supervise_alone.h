#pragma once

// Calls the training function in the first process, for a debugger: SuperviseOptions::alone.

#include <functional>
#include <optional>

#include "holdfast/train/supervise.h"

namespace holdfast {

// The value of the option; where that is empty, of the environment variable HOLDFAST_ALONE. Throws
// Error{invalid_argument} when the variable is neither 0 nor 1.
bool is_alone_asked_for(const std::optional<bool>& option);

// Returns 0. Throws what the training function throws, and Error for a run that cannot go on in this process.
int train_alone(const SuperviseOptions& options, const std::function<void(Replica&)>& train);

}  // namespace holdfast
