#pragma once

// How optimizers refuse options.

#include <string>

namespace holdfast {

// Throws Error{invalid_argument} that names all of it unless the value is finite and `is_in_range`.
void check_option(const std::string& optimizer, const std::string& option, float value, bool is_in_range,
                  const std::string& range);

}  // namespace holdfast
