#include "core/name_pattern.h"

#include <cstddef>

namespace holdfast {

bool matches_pattern(std::string_view pattern, std::string_view name) {
  std::size_t place = 0;
  std::size_t star = std::string_view::npos;  // the last * so far
  std::size_t after_star = 0;                 // where the characters begin that it does not stand for
  for (std::size_t at = 0; at < name.size();) {
    if (place < pattern.size() && pattern[place] == '*') {
      star = place++;
      after_star = at;
    } else if (place < pattern.size() && (pattern[place] == '?' || pattern[place] == name[at])) {
      ++place;
      ++at;
    } else if (star != std::string_view::npos) {
      // The last * takes one character more. An earlier one need not: this one can stand for whatever it would add.
      place = star + 1;
      at = ++after_star;
    } else {
      return false;
    }
  }
  while (place < pattern.size() && pattern[place] == '*') ++place;
  return place == pattern.size();
}

}  // namespace holdfast
