#pragma once

// An f32 array in host memory, row-major, that owns its elements: what users hand to and get from Holdfast. Copying
// copies the elements.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "holdfast/core/shape.h"

namespace holdfast {

class Tensor {
 public:
  Tensor() : Tensor(Shape{0}) {}
  // All elements zero.
  explicit Tensor(Shape shape);
  // Throws Error{invalid_argument} unless there is one value for each element.
  Tensor(Shape shape, std::vector<float> values);

  const Shape& shape() const { return shape_; }
  // Views last as long as the tensor does. A temporary hands its elements out instead, so that they can be looped over:
  // for (float value : model.predict(features).values()).
  std::span<float> values() & { return values_; }
  std::span<const float> values() const& { return values_; }
  std::vector<float> values() && { return std::move(values_); }

  // Elements of one entry along the first axis. Asserts that it exists.
  std::span<float> sample(std::int64_t index) &;
  std::span<const float> sample(std::int64_t index) const&;
  std::vector<float> sample(std::int64_t index) &&;

 private:
  Shape shape_;
  std::vector<float> values_;
};

}  // namespace holdfast
