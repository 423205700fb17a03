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

// Says what is wrong with the link `name` to the object at `path`, as text that follows the object's label (" is not
// UTF-8 text"); empty for a valid one. Soft and external links could lead anywhere, so only hard ones are valid.
std::string problem_of_link(const std::string& path, const std::string& name, bool is_hard);

// Makes text safe for errors. The names in a hostile file may hold sequences that a terminal obeys. Returns at most
// kMaxPrintableBytes, with '?' for control characters and, where the text is not UTF-8, for everything that is not
// ASCII.
inline constexpr std::size_t kMaxPrintableBytes = 2000;
std::string printable(std::string text);

}  // namespace holdfast::format
