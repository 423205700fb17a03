#pragma once

// bfloat16 is the upper half of an f32: the same exponent and 7 bits of mantissa. For host and device, as bits.

#include <cstdint>

#include "core/host_device.h"

namespace holdfast::compute {

// Rounds the f32 with these bits to the nearest bfloat16; ties go to the even one. Values from half way after the
// largest finite bfloat16 on become infinite. A NaN stays a NaN and becomes quiet.
HOLDFAST_HOST_DEVICE inline std::uint16_t round_to_bfloat16(std::uint32_t bits) {
  constexpr std::uint32_t kInfinity = 0x7F800000;
  constexpr std::uint32_t kQuiet = 0x0040;
  if ((bits & 0x7FFFFFFF) > kInfinity) return static_cast<std::uint16_t>(bits >> 16 | kQuiet);
  const std::uint32_t is_odd = bits >> 16 & 1;
  // A carry out of the mantissa correctly increases the exponent.
  return static_cast<std::uint16_t>((bits + 0x7FFF + is_odd) >> 16);
}

// The bits of the f32 with the same value.
HOLDFAST_HOST_DEVICE inline std::uint32_t widen_bfloat16(std::uint16_t bits) {
  return static_cast<std::uint32_t>(bits) << 16;
}

}  // namespace holdfast::compute
