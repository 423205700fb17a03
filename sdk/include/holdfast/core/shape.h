#pragma once

// The extents of an array, outermost axis first, elements in row-major order. A scalar has no axes and
// one element. Shapes of a model and a data set describe one sample; the axis of the batch is left out.
//
//   const Shape image{28, 28, 1};
//   image.element_count();      // 784
//   image.with_batch(32);       // [32, 28, 28, 1]

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace holdfast {

class Shape {
 public:
  // The shape of a scalar.
  Shape() = default;
  // Throws Error{invalid_argument} for a negative extent, or if the number of elements exceeds 63 bits.
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::vector<std::int64_t> extents);

  // The number of axes.
  std::size_t rank() const { return extents_.size(); }
  // The extent of one axis. Asserts that the axis exists.
  std::int64_t operator[](std::size_t axis) const;
  const std::vector<std::int64_t>& extents() const { return extents_; }  // all of them, the first axis first

  // The product of the extents.
  std::int64_t element_count() const { return element_count_; }
  // This shape with `count` as a further first axis: the shape of `count` samples.
  Shape with_batch(std::int64_t count) const;
  // This shape without its first axis. Asserts that it has one.
  Shape without_batch() const;
  // For messages: "[28, 28, 1]".
  std::string to_string() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<std::int64_t> extents_;
  std::int64_t element_count_ = 1;
};

}  // namespace holdfast
