#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "codec/huffman_code.h"

namespace holdfast::format::testing {

// Counts in which the first bytes occur as often as given, and the others never.
inline ByteCounts counts_of(std::initializer_list<std::uint32_t> first) {
  ByteCounts counts{};
  std::copy(first.begin(), first.end(), counts.begin());
  return counts;
}

}  // namespace holdfast::format::testing
