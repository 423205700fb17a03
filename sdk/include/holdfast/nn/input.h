#pragma once

// The shape of one sample, which a model begins with: Input{28, 28, 1} is [height, width, channels], Input{8000} is
// [features].

#include <initializer_list>

#include "holdfast/core/shape.h"

namespace holdfast {

class Input {
 public:
  // Throws Error{invalid_argument} without an extent, or for one that is not in [1, Layer::kMaximumExtent].
  Input(std::initializer_list<std::int64_t> extents);
  explicit Input(Shape shape);

  const Shape& shape() const { return shape_; }

 private:
  Shape shape_;
};

}  // namespace holdfast
