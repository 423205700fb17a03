#pragma once

#include <cstdint>
#include <utility>

#include "holdfast/data/dataset.h"

namespace holdfast {

// Sample i has the features {i, i + 0.5} and the target -i.
inline Dataset numbers(std::int64_t count) {
  Tensor features{Shape{count, 2}};
  Tensor targets{Shape{count}};
  for (std::int64_t i = 0; i < count; ++i) {
    features.sample(i)[0] = static_cast<float>(i);
    features.sample(i)[1] = static_cast<float>(i) + 0.5F;
    targets.sample(i)[0] = static_cast<float>(-i);
  }
  return from_tensors(std::move(features), std::move(targets));
}

inline void add_noise(Sample sample, Random& random) {
  sample.features[0] += random.uniform();
}

}  // namespace holdfast
