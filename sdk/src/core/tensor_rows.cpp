#include "core/tensor_rows.h"

#include <algorithm>
#include <cstring>

namespace holdfast {

void read_row(const RowLayout& layout, std::span<const Tensor* const> tensors, std::int64_t position,
              std::span<float> row) {
  std::ranges::fill(row, 0.0F);
  const ArrayRow arrays(layout, row);
  for (std::size_t array = 0; array < tensors.size(); ++array) {
    const std::span<std::byte> to = arrays.bytes(array);
    // An array without elements may have a null pointer, which memcpy() must not be given even for no bytes.
    if (to.empty()) continue;
    const std::span<const std::byte> from = tensors[array]->bytes();
    std::memcpy(to.data(), from.data() + static_cast<std::size_t>(position) * to.size(), to.size());
  }
}

}  // namespace holdfast
