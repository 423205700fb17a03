#pragma once

// Rules for names in a tree, for our files and for those of other programs.

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::format {

// Says what is wrong with the path of a group or dataset ("is longer than 4096 bytes"); empty for a valid path.
std::string problem_of_path(std::string_view path);

// The same for one part of a path: a link's name in its group.
std::string problem_of_name(std::string_view name);

// Makes text safe for errors. The names in a hostile file may hold sequences that a terminal obeys. Returns at most
// kMaxPrintableBytes, with '?' for control characters and, where the text is not UTF-8, for everything that is not
// ASCII.
inline constexpr std::size_t kMaxPrintableBytes = 2000;
std::string printable(std::string text);

}  // namespace holdfast::format
