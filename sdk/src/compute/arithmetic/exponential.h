#pragma once

// exp, log, log1p, tanh, erf and pow in float, for host and device.
//
// They are our own because the bits of a model must not depend on the version of a C library, and because those of the
// library work on one number at a time. These have no branches: a loop over them becomes vector instructions. They add,
// multiply and divide in the order that is written here, and never contract, so all instruction sets and devices give
// the same bits.
//
//   function                  bound of the error, in units in the last place; a test compares with double
//   exponential               1.1; below 2^-126 a unit is the step of subnormal numbers
//   logarithm                 0.8
//   logarithm_of_one_plus     1.2, for arguments that are not negative
//   hyperbolic_tangent        1.4
//   error_function            1.4
//   power                     0.8
//
// The polynomials are Chebyshev fits of the functions in the comments. A NaN gives a NaN.
// docs/decisions/processor-loops.md

#include "compute/arithmetic/float_bits.h"

namespace holdfast::compute {

inline constexpr float kLog2OfE = 1.44269504088896341F;
// log(2) in two parts. The product of the first, which has 15 bits, and a whole number of up to 9 bits is exact.
inline constexpr float kLogOf2High = 0.693145751953125F;
inline constexpr float kLogOf2Low = 1.42860682030941723e-6F;
// To add and subtract it rounds a float, of up to 2^22, to a whole number, which then is in the low bits of the sum.
inline constexpr float kRoundingShift = 0x1.8p23F;

// The series are templates, because AVX-512 has vectors for their numbers (cpu/kernels/avx512_functions.h).

// e^x = 2^n e^r with n as an integer in the low bits of a float, and e^r from sqrt(1/2) to sqrt(2).
struct ExponentialParts {
  float shifted_n;
  float e_to_r;
};

// The coefficients of the series, by their powers.
inline constexpr float kExponential2 = 0.5F;
inline constexpr float kExponential3 = 0.166665768946F;
inline constexpr float kExponential4 = 0.0416665544984F;
inline constexpr float kExponential5 = 0.00836319488242F;
inline constexpr float kExponential6 = 0.00139262033616F;

// e^r for |r| <= log(2) / 2.
template <class Number>
HOLDFAST_HOST_DEVICE inline Number exponential_series(Number r) {
  // (e^r - 1 - r) / r^2
  Number p = r * kExponential6 + kExponential5;
  p = p * r + kExponential4;
  p = p * r + kExponential3;
  p = p * r + kExponential2;
  return (p * (r * r) + r) + 1.0F;
}

HOLDFAST_HOST_DEVICE inline ExponentialParts exponential_parts(float x) {
  // x = n log(2) + r with |r| <= log(2) / 2
  const float shifted = x * kLog2OfE + kRoundingShift;
  const float n = shifted - kRoundingShift;
  const float r = (x - n * kLogOf2High) - n * kLogOf2Low;
  return {shifted, exponential_series(r)};
}

// e^x; 0 from -104 down, infinite from 89 up.
HOLDFAST_HOST_DEVICE inline float exponential(float x) {
  const float bounded = x > 89.0F ? 89.0F : x < -104.0F ? -104.0F : x;
  const ExponentialParts parts = exponential_parts(bounded);
  const auto exponent = static_cast<std::int32_t>(bits_of(parts.shifted_n) - bits_of(kRoundingShift));
  return scaled_by_power_of_two(parts.e_to_r, exponent);
}

// Those that follow give the bits of exponential() with a third fewer instructions. They need to know where x is, for
// then n can be added to the exponent of e^r as an integer. Constants of the rounding shift leave the word in that.

// e^x 2^-kScale, a normal float, and n thus from kScale - 125 to kScale + 127. A NaN gives any number.
template <int kScale>
HOLDFAST_HOST_DEVICE inline float scaled_exponential(float x) {
  const ExponentialParts parts = exponential_parts(x);
  const std::uint32_t exponent = (bits_of(parts.shifted_n) << 23) - (static_cast<std::uint32_t>(kScale) << 23);
  return float_of_bits(bits_of(parts.e_to_r) + exponent);
}

// For such x, too. The product is exact, or rounded once where it is subnormal or too large.
template <int kScale>
HOLDFAST_HOST_DEVICE inline float exponential_near(float x) {
  if constexpr (kScale == 0) return scaled_exponential<kScale>(x);
  return scaled_exponential<kScale>(x) * power_of_two(kScale);
}

// For x that is not above 0. From -104 down the result is 0, as a product with 0: an Intel Xeon took some 150 cycles
// for products that are subnormal or round to 0. Masked scores are such numbers.
HOLDFAST_HOST_DEVICE inline float exponential_of_negative(float x) {
  const float scale = x > -104.0F ? power_of_two(-64) : 0.0F;
  const float result = scaled_exponential<-64>(at_least_negative(x, -104.0F)) * scale;
  return x == x ? result : x;
}

// 1 + e^x, where all that is below -80 adds nothing to 1.
HOLDFAST_HOST_DEVICE inline float one_plus_exponential(float x) {
  const float result = 1.0F + exponential_near<2>(at_most_positive(at_least_negative(x, -80.0F), 89.0F));
  return x == x ? result : x;
}

// A positive normal float is 2^exponent * (1 + fraction), with 1 + fraction from sqrt(1/2) to sqrt(2).
struct FloatParts {
  float exponent;
  float fraction;
};

// Takes a positive number, which may be subnormal.
HOLDFAST_HOST_DEVICE inline FloatParts float_parts(float x) {
  constexpr std::uint32_t kRootOfHalf = 0x3F3504F3;
  constexpr float kSmallestNormal = 0x1p-126F;
  const bool is_subnormal = x < kSmallestNormal;
  const float normal = is_subnormal ? x * 0x1p23F : x;
  const std::uint32_t above_root = bits_of(normal) - kRootOfHalf;
  const auto exponent = static_cast<float>(static_cast<std::int32_t>(above_root) >> 23);
  const float mantissa = float_of_bits((above_root & 0x007FFFFF) + kRootOfHalf);
  return {exponent - (is_subnormal ? 23.0F : 0.0F), mantissa - 1.0F};
}

// log(x): -infinity for 0, a NaN for negative numbers.
HOLDFAST_HOST_DEVICE inline float logarithm(float x) {
  const FloatParts parts = float_parts(x);
  const float f = parts.fraction;
  const float square = f * f;
  // (log(1 + f) - f + f^2 / 2) / f^3
  float p = 0.0697161147145F;
  p = p * f - 0.114797338466F;
  p = p * f + 0.116854199235F;
  p = p * f - 0.124256873315F;
  p = p * f + 0.142490576457F;
  p = p * f - 0.166678023195F;
  p = p * f + 0.200007157489F;
  p = p * f - 0.24999996958F;
  p = p * f + 0.3333333118F;
  // The small terms are added first.
  const float small = (p * f * square + parts.exponent * kLogOf2Low) - 0.5F * square;
  const float result = (small + f) + parts.exponent * kLogOf2High;
  const float of_positive = x < kInfiniteFloat ? result : x;
  const float of_others = x == 0 ? -kInfiniteFloat : kNotANumber;
  return x > 0 ? of_positive : of_others;
}

// log(1 + x) for x that is not negative, with all digits where x is small.
HOLDFAST_HOST_DEVICE inline float logarithm_of_one_plus(float x) {
  const float sum = 1.0F + x;
  // What rounding took from the sum.
  const float lost = x - (sum - 1.0F);
  const float result = logarithm(sum) + lost / sum;
  return x < kInfiniteFloat ? result : x;
}

// The coefficients of tanh, by their powers.
inline constexpr float kTangent3 = -0.333333284333F;
inline constexpr float kTangent5 = 0.133327188456F;
inline constexpr float kTangent7 = -0.0538432631753F;
inline constexpr float kTangent9 = 0.0209613291086F;
inline constexpr float kTangent11 = -0.00604516509652F;

// (tanh(x) - x) / x^3 as a function of x^2. It is as exact as x for small x, where 1 - 2 / (e^2x + 1) is not.
template <class Number>
HOLDFAST_HOST_DEVICE inline Number tangent_series(Number square) {
  Number p = square * kTangent11 + kTangent9;
  p = p * square + kTangent7;
  p = p * square + kTangent5;
  return p * square + kTangent3;
}

HOLDFAST_HOST_DEVICE inline float hyperbolic_tangent(float x) {
  const float magnitude = absolute(x);
  const float square = x * x;
  const float small = magnitude + magnitude * square * tangent_series(square);
  // From 40 on tanh is 1 in float. The sum of a small x shows a NaN.
  const float large = 1.0F - 2.0F / (exponential_near<0>(2.0F * at_most_positive(magnitude, 40.0F)) + 1.0F);
  return with_sign_of(magnitude >= 0.625F ? large : small, x);
}

// From here on erf(x) is 1 - e^Q(x), and x + x P(x^2) below. kErrorNear and kErrorFar are the coefficients of P and Q,
// by their powers.
inline constexpr float kErrorFarFrom = 0.92F;
// From here on erf is 1 in float.
inline constexpr float kErrorIsOneFrom = 4.0F;
inline constexpr float kErrorNear0 = 0.128379149693F;
inline constexpr float kErrorNear1 = -0.376124929873F;
inline constexpr float kErrorNear2 = 0.11281796526F;
inline constexpr float kErrorNear3 = -0.0267655606516F;
inline constexpr float kErrorNear4 = 0.00499123123369F;
inline constexpr float kErrorNear5 = -0.000597925806004F;
inline constexpr float kErrorFar0 = 0.000320441531277F;
inline constexpr float kErrorFar1 = -1.13023761637F;
inline constexpr float kErrorFar2 = -0.631814516659F;
inline constexpr float kErrorFar3 = -0.110094480828F;
inline constexpr float kErrorFar4 = 0.0264310176034F;
inline constexpr float kErrorFar5 = -0.00476357524915F;
inline constexpr float kErrorFar6 = 0.000597743471961F;
inline constexpr float kErrorFar7 = -4.61779127904e-5F;
inline constexpr float kErrorFar8 = 1.6435696536e-6F;

// log(1 - erf(|x|)) where |x| is at least kErrorFarFrom. A function of its own, because loops compute it ahead of the
// rest (activations.h).
HOLDFAST_HOST_DEVICE inline float error_exponent(float x) {
  const float bounded = at_most_positive(absolute(x), kErrorIsOneFrom);
  float q = kErrorFar8;
  q = q * bounded + kErrorFar7;
  q = q * bounded + kErrorFar6;
  q = q * bounded + kErrorFar5;
  q = q * bounded + kErrorFar4;
  q = q * bounded + kErrorFar3;
  q = q * bounded + kErrorFar2;
  q = q * bounded + kErrorFar1;
  return q * bounded + kErrorFar0;
}

// erf(x), of x and error_exponent(x).
HOLDFAST_HOST_DEVICE inline float error_of(float x, float exponent) {
  const float magnitude = absolute(x);
  const float square = x * x;
  float p = kErrorNear5;
  p = p * square + kErrorNear4;
  p = p * square + kErrorNear3;
  p = p * square + kErrorNear2;
  p = p * square + kErrorNear1;
  p = p * square + kErrorNear0;
  const float small = magnitude + magnitude * p;
  const float large = 1.0F - exponential_near<0>(exponent);
  return with_sign_of(magnitude >= kErrorFarFrom ? large : small, x);
}

HOLDFAST_HOST_DEVICE inline float error_function(float x) {
  return error_of(x, error_exponent(x));
}

// base^exponent with the special cases of C's pow(). Logarithm and exponential are computed in double: in float an
// error of the logarithm would be multiplied by up to 88.
HOLDFAST_HOST_DEVICE inline float power(float base, float exponent) {
  const float magnitude = absolute(base);
  const FloatParts parts = float_parts(magnitude);
  // log(1 + f) = 2 artanh(s) with s = f / (2 + f), |s| <= 0.172
  const double f = parts.fraction;
  const double s = f / (2.0 + f);
  const double square = s * s;
  double series = 1.0 / 13;
  series = series * square + 1.0 / 11;
  series = series * square + 1.0 / 9;
  series = series * square + 1.0 / 7;
  series = series * square + 1.0 / 5;
  series = series * square + 1.0 / 3;
  series = series * square + 1.0;
  constexpr double kLogOf2 = 0.693147180559945309;
  const double of_normal = parts.exponent * kLogOf2 + 2.0 * s * series;
  const double infinite = kInfiniteFloat;
  const double of_any = magnitude == 0 ? -infinite : magnitude < kInfiniteFloat ? of_normal : infinite;
  // 1 to an infinite power is 1, and so is a NaN to the power of 0.
  const bool is_one = magnitude == 1 || exponent == 0;
  const double product = is_one ? 0.0 : exponent * of_any;
  const double bounded = product > 89.0 ? 89.0 : product < -104.0 ? -104.0 : product;

  constexpr double kShift = 0x1.8p52;
  const double n = (bounded * 1.44269504088896341 + kShift) - kShift;
  const double r = bounded - n * kLogOf2;
  double p = 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  // A NaN has no whole number.
  const std::int32_t whole = static_cast<std::int32_t>(bounded == bounded ? n : 0.0);
  const float result = scaled_by_power_of_two(static_cast<float>(p), whole);

  // From 2^24 on every float is an even number.
  const float countable = absolute(exponent) < 0x1p24F ? exponent : 0.0F;
  const auto truncated = static_cast<std::int32_t>(countable);
  const bool is_whole = static_cast<float>(truncated) == countable && exponent == exponent;
  const bool is_odd = (truncated & 1) != 0;
  const float of_negative = !is_whole ? kNotANumber : is_odd ? -result : result;
  const bool is_negative = (bits_of(base) & kSignBit) != 0;
  // Zeros and infinities may be raised to any number; only their sign needs a whole one.
  const bool has_every_power = magnitude == 0 || !(magnitude < kInfiniteFloat);
  const float of_signed = has_every_power && !is_whole ? result : of_negative;
  const float signed_result = is_negative ? of_signed : result;
  const bool is_number = base == base || exponent == 0;
  return is_number && (exponent == exponent || base == 1) ? signed_result : kNotANumber;
}

}  // namespace holdfast::compute
