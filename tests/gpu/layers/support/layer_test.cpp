#include "gpu/layers/support/layer_test.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>

#include "compute/arithmetic/bfloat16.h"

namespace holdfast {

Floats factors_of(Precision precision, const Floats& values) {
  if (precision != Precision::bf16) return values;
  Floats rounded;
  for (const float value : values) {
    const std::uint16_t bits = compute::round_to_bfloat16(std::bit_cast<std::uint32_t>(value));
    rounded.push_back(std::bit_cast<float>(compute::widen_bfloat16(bits)));
  }
  return rounded;
}

std::string test_name(Precision precision) {
  std::string text(name(precision));
  std::transform(text.begin(), text.end(), text.begin(), [](char letter) {
    return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  });
  return text;
}

std::string differences(const Floats& expected, const Floats& actual, float tolerance) {
  if (expected.size() != actual.size()) return "the lengths differ";
  std::size_t count = 0;
  std::size_t first = 0;
  float worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const float difference = std::abs(expected[i] - actual[i]);
    // A NaN differs from every number.
    if (difference <= tolerance) continue;
    if (count++ == 0) first = i;
    worst = std::isnan(difference) ? difference : std::max(worst, difference);
  }
  if (count == 0) return "";
  return fmt::format("{} of {} floats differ by more than {}, by up to {}; the first is {}: expected {}, is {}", count,
                     expected.size(), tolerance, worst, first, expected[first], actual[first]);
}

}  // namespace holdfast
