#pragma once

// The shape of one sample, with which a model begins. Input{28, 28, 1} is [height, width, channels],
// and Input{8000} is [features]. The number of samples is not part of it.

#include <initializer_list>

#include "holdfast/core/shape.h"

namespace holdfast {

// Converts a list of extents into a Shape and checks it.
class Input {
 public:
  // Both throw Error{invalid_argument} without an extent, or for one that is not in [1,
  // Layer::kMaximumExtent].
  Input(std::initializer_list<std::int64_t> extents);
  explicit Input(Shape shape);

  const Shape& shape() const { return shape_; }  // of one sample

 private:
  Shape shape_;
};

}  // namespace holdfast
