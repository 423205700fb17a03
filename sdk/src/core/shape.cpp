// The number of elements is counted once, with a check for overflow. After that, no code that multiplies extents needs
// to check again.

#include "holdfast/core/shape.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast {

// A file or a user may give any extents, so this is an error and not an assertion.
static std::int64_t count_elements(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape.extents()) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("shape {} has a negative extent or more elements than 63 bits can count", shape.to_string()));
    }
  }
  return count;
}

Shape::Shape(std::initializer_list<std::int64_t> extents) : Shape(std::vector<std::int64_t>(extents)) {}

Shape::Shape(std::vector<std::int64_t> extents) : extents_(std::move(extents)), element_count_(count_elements(*this)) {}

std::int64_t Shape::operator[](std::size_t axis) const {
  HOLDFAST_ASSERT(axis < extents_.size());
  return extents_[axis];
}

// The batch is the first axis everywhere.
Shape Shape::with_batch(std::int64_t count) const {
  std::vector<std::int64_t> extents = {count};
  extents.insert(extents.end(), extents_.begin(), extents_.end());
  return Shape(std::move(extents));
}

Shape Shape::without_batch() const {
  HOLDFAST_ASSERT(!extents_.empty());
  return Shape(std::vector<std::int64_t>(extents_.begin() + 1, extents_.end()));
}

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(extents_, ", "));
}

}  // namespace holdfast
