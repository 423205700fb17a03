#pragma once

// An f32 array in the memory of the host, row-major, that owns its elements. Applications pass tensors
// to Holdfast and get them back. Copying a tensor copies its elements.
//
//   Tensor features(Shape{2, 3}, {1, 2, 3, 4, 5, 6});   // two samples of three numbers
//   features.sample(1)[0] = 7;

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "holdfast/core/shape.h"

namespace holdfast {

class Tensor {
 public:
  // An array without elements.
  Tensor() : Tensor(Shape{0}) {}
  // All elements are zero.
  explicit Tensor(Shape shape);
  // Throws Error{invalid_argument} unless `values` has one value for each element of the shape.
  Tensor(Shape shape, std::vector<float> values);

  // The first axis counts samples wherever a tensor holds data for a model.
  const Shape& shape() const { return shape_; }
  // All elements in row-major order. A view is valid as long as the tensor. A temporary gives its
  // elements away instead, so this loop is safe: for (float value : model.predict(features).values()).
  std::span<float> values() & { return values_; }
  std::span<const float> values() const& { return values_; }
  std::vector<float> values() && { return std::move(values_); }

  // The elements of one entry along the first axis. Asserts that the entry exists.
  std::span<float> sample(std::int64_t index) &;
  std::span<const float> sample(std::int64_t index) const&;
  std::vector<float> sample(std::int64_t index) &&;

 private:
  Shape shape_;
  std::vector<float> values_;
};

}  // namespace holdfast
