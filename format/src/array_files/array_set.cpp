#include "holdfast/format/array_set.h"

namespace holdfast::format {

std::vector<ArrayView> views(std::span<const NamedArray> arrays) {
  std::vector<ArrayView> result;
  result.reserve(arrays.size());
  for (const NamedArray& array : arrays) result.push_back({array.name, array.dtype, array.shape, array.bytes});
  return result;
}

}  // namespace holdfast::format
