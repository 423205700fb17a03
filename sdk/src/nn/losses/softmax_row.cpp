#include "nn/losses/softmax_row.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast {

// A scalar has no axis of classes, and a row without elements has no largest score.
void check_has_classes(const std::string& loss, const Shape& output) {
  if (output.rank() >= 1 && output.element_count() > 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} needs a model whose output has an axis, the classes; it has the shape {}", loss,
                          output.to_string()));
}

std::size_t axes_before_classes(const Shape& output) {
  return output.rank() == 0 ? 0 : output.rank() - 1;
}

}  // namespace holdfast
