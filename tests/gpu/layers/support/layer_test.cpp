#include "gpu/layers/support/layer_test.h"

#include <algorithm>

namespace holdfast {

std::string differences(const Floats& expected, const Floats& actual, float tolerance) {
  if (expected.size() != actual.size()) return "the lengths differ";
  std::size_t count = 0;
  std::size_t first = 0;
  float worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const float difference = std::abs(expected[i] - actual[i]);
    // What is not a number is near nothing.
    if (difference <= tolerance) continue;
    if (count++ == 0) first = i;
    worst = std::isnan(difference) ? difference : std::max(worst, difference);
  }
  if (count == 0) return "";
  return std::to_string(count) + " of " + std::to_string(expected.size()) + " floats differ by more than " +
         std::to_string(tolerance) + ", by up to " + std::to_string(worst) + "; the first is " + std::to_string(first) +
         ": expected " + std::to_string(expected[first]) + ", is " + std::to_string(actual[first]);
}

}  // namespace holdfast
