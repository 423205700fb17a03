#pragma once

#include <cstdint>
#include <utility>

#include "holdfast/holdfast.h"

namespace holdfast {

// Samples of y = 2 x + 1 with a little noise, the same each time: for programs whose training must be cheap.
inline Dataset line_points(std::int64_t samples) {
  Tensor features(Shape{samples, 1});
  Tensor targets(Shape{samples, 1});
  for (std::int64_t i = 0; i < samples; ++i) {
    Random random(3, Purpose::synthetic_data, 0, static_cast<std::uint64_t>(i));
    features.sample(i)[0] = random.normal();
    targets.sample(i)[0] = 2 * features.sample(i)[0] + 1 + 0.1F * random.normal();
  }
  return from_tensors(std::move(features), std::move(targets));
}

}  // namespace holdfast
