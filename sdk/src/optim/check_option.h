#pragma once

// How optimizers and what belongs to them refuse options.

#include <cstdint>
#include <string>

#include "holdfast/optim/learning_rate.h"

namespace holdfast {

// Throws Error{invalid_argument} that names all of it unless the value is finite and `is_in_range`.
void check_option(const std::string& owner, const std::string& option, float value, bool is_in_range,
                  const std::string& range);
void check_count(const std::string& owner, const std::string& option, std::int64_t count, std::int64_t least);
// Not negative; a schedule has checked itself.
void check_learning_rate(const std::string& owner, const LearningRate& rate);

}  // namespace holdfast
