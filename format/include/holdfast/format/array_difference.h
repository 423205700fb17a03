#pragma once

// By how much two arrays of one type and shape differ: for `holdfast diff`, and for tests that compare
// two states.
//
//   const ArrayDifference difference = difference_of(DType::f32, a, b);
//   if (difference.differing > 0) std::cout << "max |a - b| = " << difference.max_absolute << "\n";

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "holdfast/base/dtype.h"

namespace holdfast::format {

// Counts of elements, and the largest distances of any pair of elements.
struct ArrayDifference {
  std::uint64_t elements = 0;   // pairs that were compared
  std::uint64_t differing = 0;  // pairs that are not equal
  // Over the pairs without a NaN. Infinite when one element of a pair is infinite and the other is not.
  double max_absolute = 0;      // |a - b|
  double max_relative = 0;      // |a - b| / max(|a|, |b|)
  std::uint64_t nans_in_a = 0;  // elements of the first array
  std::uint64_t nans_in_b = 0;  // elements of the second array
};

// Compares `a` and `b`, row-major little-endian elements of `dtype`. Throws Error{invalid_argument} when
// their sizes differ.
//
// Without a tolerance, two elements differ when their bits differ: 0 and -0 do, and so do two kinds of
// NaN. With a tolerance, also one of 0, they differ when |a - b| is larger, or when exactly one of them
// is NaN. Integers are subtracted exactly, also beyond 2^53.
ArrayDifference difference_of(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
                              const std::optional<double>& tolerance = {});

}  // namespace holdfast::format
