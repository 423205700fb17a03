#include "holdfast/nn/input.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/core/row_layout.h"
#include "nn/operations/checks.h"

namespace holdfast {

Input::Input(std::initializer_list<std::int64_t> extents) : Input(Shape(extents)) {}

Input::Input(Shape shape, const InputOptions& options) : shape_(std::move(shape)), dtype_(options.dtype) {
  if (shape_.rank() == 0) throw Error(ErrorCode::invalid_argument, "Input needs the extents of a sample, at least one");
  // Each layer may thus multiply two extents without an overflow.
  for (const std::int64_t extent : shape_.extents()) check_extent("Input", "extents", extent);
  if (is_sample_type(dtype_)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a model cannot have an input of {}; its types are f32, bf16, i32, i64, u8, u16 and boolean",
                          name(dtype_)));
}

}  // namespace holdfast
