#include "holdfast/format/array_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "holdfast/base/elements.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

// Integers are subtracted as integers: as doubles, two large ones that differ could be equal.
template <typename Value>
double distance(Value a, Value b) {
  if constexpr (std::is_integral_v<Value>) {
    const auto larger = static_cast<std::uint64_t>(std::max(a, b));
    return static_cast<double>(larger - static_cast<std::uint64_t>(std::min(a, b)));
  } else {
    // Two equal infinities have no distance. Their difference would be NaN.
    return a == b ? 0 : std::abs(static_cast<double>(a) - static_cast<double>(b));
  }
}

double relative(double distance, double a, double b) {
  if (distance == 0) return 0;
  if (std::isinf(a) || std::isinf(b)) return std::numeric_limits<double>::infinity();
  const double largest = std::max(std::abs(a), std::abs(b));
  // Halves, since the distance of two large numbers may exceed what a double holds.
  return std::isinf(distance) ? 2 * (std::abs(a / 2 - b / 2) / largest) : distance / largest;
}

template <typename Element>
void compare(const std::byte* a, const std::byte* b, const std::optional<double>& tolerance, ArrayDifference& result) {
  const auto value_a = Element::load(a);
  const auto value_b = Element::load(b);
  const bool is_nan_a = std::isnan(static_cast<double>(value_a));
  const bool is_nan_b = std::isnan(static_cast<double>(value_b));
  result.nans_in_a += is_nan_a ? 1 : 0;
  result.nans_in_b += is_nan_b ? 1 : 0;
  if (std::memcmp(a, b, Element::kBytes) == 0) return;
  if (is_nan_a || is_nan_b) {
    // With a tolerance all NaNs are equal: their bits say nothing about the numbers.
    result.differing += tolerance && is_nan_a && is_nan_b ? 0 : 1;
    return;
  }
  const double apart = distance(value_a, value_b);
  result.max_absolute = std::max(result.max_absolute, apart);
  result.max_relative =
      std::max(result.max_relative, relative(apart, static_cast<double>(value_a), static_cast<double>(value_b)));
  // Without a tolerance other bits are a difference, even if the values are equal, as 0 and -0 are.
  result.differing += tolerance && apart <= *tolerance ? 0 : 1;
}

}  // namespace

ArrayDifference difference_of(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
                              const std::optional<double>& tolerance) {
  if (a.size() != b.size()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("cannot compare arrays of {} and {} bytes; give two of one type and shape", a.size(), b.size()));
  }
  return with_element(dtype, [&]<typename Element>(Element) {
    ArrayDifference result{.elements = a.size() / Element::kBytes};
    for (std::size_t at = 0; at + Element::kBytes <= a.size(); at += Element::kBytes) {
      compare<Element>(a.data() + at, b.data() + at, tolerance, result);
    }
    return result;
  });
}

}  // namespace holdfast::format
