#include "nn/losses/softmax_row.h"

#include "holdfast/base/error.h"

namespace holdfast {

void check_is_row_of_classes(const std::string& loss, const Shape& output) {
  // A sample has one row of classes. With more axes, it would not be clear which of them are the classes.
  if (output.rank() == 1 && output[0] > 0) return;
  throw Error(ErrorCode::invalid_argument,
              loss + " needs a model whose output has one axis, the classes; it has the shape " + output.to_string());
}

}  // namespace holdfast
