#pragma once

// Draws which positions belong to which part of a split.

#include <cstdint>
#include <string_view>
#include <vector>

#include "holdfast/core/random.h"

namespace holdfast {

struct SplitPositions {
  using Positions = std::vector<std::uint32_t>;

  Positions training;
  Positions validation;

  // Draws `validation_samples` of the positions; every choice is equally likely (Fisher and Yates). The others are for
  // training. Asserts that there are so many.
  void add(Positions positions, std::int64_t validation_samples, Random random);
  // Rising positions keep the order of the data, and a file is read from its begin to its end.
  void sort();
};

// How many of `size` samples the fraction is. Throws Error{invalid_argument} unless it lies between 0 and 1 and leaves
// a sample in both parts. `sample` is the word for one in messages.
std::int64_t samples_of_fraction(double fraction, std::int64_t size, std::string_view sample);

}  // namespace holdfast
