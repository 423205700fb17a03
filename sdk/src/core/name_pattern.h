#pragma once

// Patterns of names, with which options choose layers and arrays: "block1_*", "*/bias".

#include <string_view>

namespace holdfast {

// Whether the whole name matches. * stands for any characters, also none and also "/", and ? for one. Takes time in
// proportion to the product of both lengths at most.
bool matches_pattern(std::string_view pattern, std::string_view name);

// Whether a pattern of arrays matches: the name of the array, or that of its layer. "base/dense/kernel" is an array of
// the layer "base/dense".
inline bool matches_array(std::string_view pattern, std::string_view name) {
  return matches_pattern(pattern, name) || matches_pattern(pattern, name.substr(0, name.rfind('/')));
}

}  // namespace holdfast
