#pragma once

#include <cstddef>
#include <string>

namespace holdfast {

// How often `text` occurs in `output`.
inline std::size_t count_of(const std::string& text, const std::string& output) {
  std::size_t count = 0;
  for (std::size_t at = output.find(text); at != std::string::npos; at = output.find(text, at + 1)) ++count;
  return count;
}

}  // namespace holdfast
