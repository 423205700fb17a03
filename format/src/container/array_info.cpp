#include "holdfast/format/array_info.h"

#include "holdfast/base/error.h"
#include "holdfast/base/shape_bytes.h"

namespace holdfast::format {

std::uint64_t size_bytes(const ArrayInfo& array) {
  std::uint64_t bytes = 0;
  HOLDFAST_ASSERT(multiply_shape(array.shape, size_bytes(array.dtype), bytes));
  return bytes;
}

}  // namespace holdfast::format
