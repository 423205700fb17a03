#pragma once

// The names that a tree may have, in a file of ours and of strangers.

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::format {

// What is wrong with the path of a group or dataset ("holds an empty part"); empty when nothing is.
std::string problem_of_path(std::string_view path);

// The same of one part, a link's name in its group.
std::string problem_of_name(std::string_view name);

// For errors about a hostile file, whose names may hold what a terminal obeys: at most kMaxPrintableBytes of it, with
// '?' for controls, and for all that is not ASCII in a text that is not UTF-8.
inline constexpr std::size_t kMaxPrintableBytes = 2000;
std::string printable(std::string text);

}  // namespace holdfast::format
