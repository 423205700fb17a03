#pragma once

// By how much two arrays of one type and shape differ.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "holdfast/base/dtype.h"

namespace holdfast::format {

struct ArrayDifference {
  std::uint64_t elements = 0;
  std::uint64_t differing = 0;
  // Over the elements that are NaN on neither side; infinite where a finite and an infinite one meet.
  double max_absolute = 0;  // |a - b|
  double max_relative = 0;  // |a - b| / max(|a|, |b|)
  std::uint64_t nans_in_a = 0;
  std::uint64_t nans_in_b = 0;
};

// Elements differ when their bits do (0 and -0, two sorts of NaN); with a tolerance, when their values are further
// apart than it, or just one of them is NaN. `a` and `b` have the same size, else Error{invalid_argument}.
ArrayDifference difference_of(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
                              const std::optional<double>& tolerance = {});

}  // namespace holdfast::format
