#pragma once

// The names that a tree may have, in a file of ours and of strangers.

#include <string>
#include <string_view>

namespace holdfast::format {

// What is wrong with the path of a group or dataset ("holds an empty part"); empty when nothing is.
std::string problem_of_path(std::string_view path);

// The same of one part, a link's name in its group.
std::string problem_of_name(std::string_view name);

}  // namespace holdfast::format
