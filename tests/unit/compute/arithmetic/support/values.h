#pragma once

#include <cstdint>
#include <vector>

#include "holdfast/core/random.h"

namespace holdfast::compute {

// Uniform values in [-1, 1); equal numbers give equal values.
inline std::vector<float> random_values(std::int64_t count, std::uint64_t number) {
  Random random(number, Purpose::user, 0, 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = 2 * random.uniform() - 1;
  return values;
}

}  // namespace holdfast::compute
