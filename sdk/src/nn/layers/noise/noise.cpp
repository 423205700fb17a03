// Back ends draw for dropout only, which is one bit for an element. So a normal number is built from 23 such draws: a
// sum of signs times powers of two is one of 2^23 evenly spaced numbers in (-1, 1), and the inverse of the normal
// distribution makes a normal number of it. That needs no kernel of its own.
// docs/decisions/layers.md

#include "nn/layers/noise/noise.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numbers>
#include <span>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/operations/elements.h"
#include "nn/operations/operations.h"

namespace holdfast {

void check_rate(std::string_view kind, float rate) {
  // Elements that are kept are divided by 1 - rate, which must not be 0.
  if (rate >= 0 && rate < 1) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} needs a rate from 0 to below 1, not {}", kind, rate));
}

namespace {

// Zeros in the shape of `like`, also where that is NaN.
Value zeros_like(const Value& like) {
  // No gradient passes a comparison. So noise has none, and the input keeps its own.
  return less(like, like);
}

DropoutSequence sequence_of(const LayerBuilder& builder, std::uint64_t number) {
  return {.sequences_per_step = builder.draw_sequences_per_step(),
          .sequence = further_sequence(builder.draw_sequence(), number)};
}

// An odd multiple of 2^-23 between -1 and 1, all equally likely. Each partial sum is a float.
Value even_noise(const LayerBuilder& builder, const Value& like) {
  // A float has 24 bits, so a sum of so many powers of two is exact.
  constexpr std::uint64_t kBits = 23;
  const Value zeros = zeros_like(like);
  // A drawn element is 0 or twice what it was.
  Value sum = zeros - (1.0F - std::ldexp(1.0F, -static_cast<int>(kBits)));
  for (std::uint64_t bit = 1; bit <= kBits; ++bit) {
    const float weight = std::ldexp(1.0F, -static_cast<int>(bit));
    sum = sum + dropout(zeros + weight, 0.5F, sequence_of(builder, bit));
  }
  return sum;
}

Value polynomial(const Value& x, std::span<const float> from_highest) {
  // Horner's rule: coefficients come from that of the highest power.
  Value result = x * from_highest[0] + from_highest[1];
  for (const float coefficient : from_highest.subspan(2)) result = result * x + coefficient;
  return result;
}

// M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2011, single precision. |x| < 1.
Value inverse_error_function(const Value& x) {
  constexpr std::array kCentral = {2.81022636e-08F, 3.43273939e-07F, -3.5233877e-06F, -4.39150654e-06F, 0.00021858087F,
                                   -0.00125372503F, -0.00417768164F, 0.246640727F,    1.50140941F};
  constexpr std::array kTail = {-0.000200214257F, 0.000100950558F, 0.00134934322F, -0.00367342844F, 0.00573950773F,
                                -0.0076224613F,   0.00943887047F,  1.00167406F,    2.83297682F};
  // Near 1, 1 - x^2 would lose the digits that 1 - x keeps.
  const Value w = -logarithm((1.0F - x) * (1.0F + x));
  // Both polynomials are computed for each element, and one is chosen. Both are finite for each x that is drawn.
  const Value is_central = element_function(compute::ElementFunction::less, {w, 5.0F});
  return x * where(is_central, polynomial(w - 2.5F, kCentral), polynomial(square_root(w) - 3.0F, kTail));
}

}  // namespace

Value dropout_mask(const LayerBuilder& builder, const Value& like, float rate, std::uint64_t number) {
  // Dropout of ones is the mask itself, scaled as dropout scales what it keeps.
  return dropout(zeros_like(like) + 1.0F, rate, sequence_of(builder, number));
}

Value normal_noise(const LayerBuilder& builder, const Value& like) {
  // If x is even in (-1, 1), then sqrt(2) erfinv(x) is normal.
  return inverse_error_function(even_noise(builder, like)) * std::numbers::sqrt2_v<float>;
}

}  // namespace holdfast
