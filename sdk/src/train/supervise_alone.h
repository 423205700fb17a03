#pragma once

// The training function in the first process, for a debugger: SuperviseOptions::alone.

#include <functional>
#include <optional>

#include "holdfast/train/supervise.h"

namespace holdfast {

// What the option says or, where it is empty, HOLDFAST_ALONE. Throws Error{invalid_argument} for another value of that
// than 0 and 1.
bool is_alone_asked_for(const std::optional<bool>& option);

// Returns 0. Throws what the training function throws, and Error for a run that cannot go on here.
int train_alone(const SuperviseOptions& options, const std::function<void(Replica&)>& train);

}  // namespace holdfast
