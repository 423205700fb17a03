#pragma once

// The training function in the first process, for a debugger: SuperviseOptions::alone.

#include <functional>
#include <optional>

#include "holdfast/train/supervise.h"

namespace holdfast {

// The value of the option or, where it is empty, of HOLDFAST_ALONE. Throws Error{invalid_argument} where the variable
// is neither 0 nor 1.
bool is_alone_asked_for(const std::optional<bool>& option);

// Returns 0. Throws what the training function throws, and Error for a run that cannot go on here.
int train_alone(const SuperviseOptions& options, const std::function<void(Replica&)>& train);

}  // namespace holdfast
