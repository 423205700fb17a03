#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "codec/huffman_code.h"

namespace holdfast::format::testing {

// How often the first bytes occur; the others never do.
inline ByteCounts counts_of(std::initializer_list<std::uint32_t> first) {
  ByteCounts counts{};
  std::copy(first.begin(), first.end(), counts.begin());
  return counts;
}

}  // namespace holdfast::format::testing
