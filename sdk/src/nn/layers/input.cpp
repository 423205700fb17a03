#include "holdfast/nn/input.h"

#include "holdfast/base/error.h"
#include "nn/operations/checks.h"

namespace holdfast {

Input::Input(std::initializer_list<std::int64_t> extents) : Input(Shape(extents)) {}

Input::Input(Shape shape) : shape_(std::move(shape)) {
  if (shape_.rank() == 0) throw Error(ErrorCode::invalid_argument, "Input needs the extents of a sample, at least one");
  // Each layer may thus multiply two extents without an overflow.
  for (const std::int64_t extent : shape_.extents()) check_extent("Input", "extents", extent);
}

}  // namespace holdfast
