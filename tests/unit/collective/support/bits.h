#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace holdfast {

inline std::vector<std::uint32_t> bits(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

}  // namespace holdfast
