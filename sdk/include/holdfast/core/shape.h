#pragma once

// The extents of an array, outermost first; row-major. A scalar has no extents and one element.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace holdfast {

class Shape {
 public:
  Shape() = default;
  // Throws Error{invalid_argument} for a negative extent, or when the number of elements does not fit into 63 bits.
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::vector<std::int64_t> extents);

  std::size_t rank() const { return extents_.size(); }
  // Asserts that the axis exists.
  std::int64_t operator[](std::size_t axis) const;
  const std::vector<std::int64_t>& extents() const { return extents_; }

  std::int64_t element_count() const { return element_count_; }
  // This shape behind one more axis in front: the shape of `count` samples.
  Shape with_batch(std::int64_t count) const;
  // The shape without its first axis. Asserts that there is one.
  Shape without_batch() const;
  // "[28, 28, 1]"
  std::string to_string() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<std::int64_t> extents_;
  std::int64_t element_count_ = 1;
};

}  // namespace holdfast
