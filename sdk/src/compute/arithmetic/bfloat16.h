#pragma once

// bfloat16 is the upper half of an f32: the same exponents, 7 bits of mantissa. For host and device, as bits.

#include <cstdint>

#include "core/host_device.h"

namespace holdfast::compute {

// The bfloat16 that is nearest to the f32 of these bits, the even one of two; infinite from half way between the
// largest and what would follow it. A NaN stays one, and becomes quiet.
HOLDFAST_HOST_DEVICE inline std::uint16_t round_to_bfloat16(std::uint32_t bits) {
  constexpr std::uint32_t kInfinity = 0x7F800000;
  constexpr std::uint32_t kQuiet = 0x0040;
  if ((bits & 0x7FFFFFFF) > kInfinity) return static_cast<std::uint16_t>(bits >> 16 | kQuiet);
  const std::uint32_t is_odd = bits >> 16 & 1;
  // What is carried out of the mantissa belongs into the exponent.
  return static_cast<std::uint16_t>((bits + 0x7FFF + is_odd) >> 16);
}

// The bits of the f32 with the same value.
HOLDFAST_HOST_DEVICE inline std::uint32_t widen_bfloat16(std::uint16_t bits) {
  return static_cast<std::uint32_t>(bits) << 16;
}

}  // namespace holdfast::compute
