#pragma once

// The bits of floats, and operations on them that are exact. For host and device. None has a branch, so that compilers
// make vector instructions of loops over them.

#include <cstdint>

#include "core/host_device.h"

namespace holdfast::compute {

HOLDFAST_HOST_DEVICE inline std::uint32_t bits_of(float value) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(value);
#else
  return __builtin_bit_cast(std::uint32_t, value);
#endif
}

HOLDFAST_HOST_DEVICE inline float float_of_bits(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return __builtin_bit_cast(float, bits);
#endif
}

inline constexpr std::uint32_t kSignBit = 0x80000000;
inline constexpr float kInfiniteFloat = __builtin_inff();
inline constexpr float kNotANumber = __builtin_nanf("");

HOLDFAST_HOST_DEVICE inline float absolute(float x) {
  return float_of_bits(bits_of(x) & ~kSignBit);
}

// `magnitude`, which is not negative, with the sign of `sign`.
HOLDFAST_HOST_DEVICE inline float with_sign_of(float magnitude, float sign) {
  return float_of_bits(bits_of(magnitude) | (bits_of(sign) & kSignBit));
}

// The smaller of x and a bound that is positive; the larger of x and a bound that is negative. Floats of one sign are
// in the order of their bits, and a smallest integer is one instruction where a choice of floats is three. A NaN may
// become the bound.
HOLDFAST_HOST_DEVICE inline float at_most_positive(float x, float bound) {
  const auto bits = static_cast<std::int32_t>(bits_of(x));
  const auto most = static_cast<std::int32_t>(bits_of(bound));
  return float_of_bits(static_cast<std::uint32_t>(bits < most ? bits : most));
}

HOLDFAST_HOST_DEVICE inline float at_least_negative(float x, float bound) {
  const std::uint32_t least = bits_of(bound);
  return float_of_bits(bits_of(x) < least ? bits_of(x) : least);
}

// Correctly rounded, like every square root of IEEE 754.
HOLDFAST_HOST_DEVICE inline float square_root(float x) {
#ifdef __CUDA_ARCH__
  return sqrtf(x);
#else
  return __builtin_sqrtf(x);
#endif
}

// 2^exponent as a normal float, for exponents from -126 to 127.
HOLDFAST_HOST_DEVICE inline float power_of_two(std::int32_t exponent) {
  return float_of_bits(static_cast<std::uint32_t>(exponent + 127) << 23);
}

// value * 2^exponent, rounded once, for a value near 1 and exponents from -252 to 254. A result that is too large
// becomes infinite.
HOLDFAST_HOST_DEVICE inline float scaled_by_power_of_two(float value, std::int32_t exponent) {
  // A single factor would be too large or too small a float at both ends.
  const std::int32_t half = exponent >> 1;
  return value * power_of_two(half) * power_of_two(exponent - half);
}

}  // namespace holdfast::compute
