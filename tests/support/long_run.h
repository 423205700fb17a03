#pragma once

// Some tests can be more thorough when they have more time. HOLDFAST_LONG_TESTS=1 in the environment asks for their
// long runs, which take minutes; without it they take seconds.

#include <cstdlib>
#include <string_view>

namespace holdfast {

inline bool is_long_run() {
  const char* value = std::getenv("HOLDFAST_LONG_TESTS");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace holdfast
