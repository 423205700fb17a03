#pragma once

// Helps with a name that was misspelt.

#include <span>
#include <string>
#include <string_view>

namespace holdfast {

// The name with the smallest distance from `asked`: how many letters must be inserted, removed or replaced, where case
// counts half. If several are as near, the first. Empty without names.
std::string nearest_name(std::string_view asked, std::span<const std::string> names);

}  // namespace holdfast
