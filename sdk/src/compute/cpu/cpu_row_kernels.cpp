// The kernels of rows: arrays as samples travel, and tables that are read by number. A sum over equal ids is taken in
// the order of the ids, so that its bits depend on them alone.

#include <fmt/format.h>

#include <algorithm>

#include "compute/arithmetic/row_elements.h"
#include "compute/cpu/cpu_array_kernels.h"
#include "core/sample_error.h"

namespace holdfast::compute {

void CpuArrayKernels::convert(const RowConversion& conversion, const float* from, float* to) {
  const bool is_to_float = conversion.to == DType::f32;
  for (std::int64_t row = 0; row < conversion.rows; ++row) {
    const float* const array = from + row * conversion.row_words + conversion.first_word;
    // A copy of words keeps the bits of every number, also those of a NaN.
    if (conversion.from == conversion.to) {
      to = std::copy_n(array, conversion.elements, to);
      continue;
    }
    for (std::int64_t i = 0; i < conversion.elements; ++i) {
      *to++ = converted_element(conversion.from, is_to_float, array, i);
    }
  }
}

static std::int64_t checked_id(const RowGather& gather, const float* ids, std::int64_t index) {
  const std::int32_t id = read_element<std::int32_t>(ids, index);
  if (id >= 0 && id < gather.table_rows) return id;
  const std::int64_t each = gather.ids_per_sample;
  throw SampleError(
      index / each, gather.ids / each,
      fmt::format("has the id {} at position {}, which is not in [0, {}), the rows of its table; make the "
                  "table larger or map such ids to one that it has",
                  id, index % each, gather.table_rows));
}

void CpuArrayKernels::gather(const RowGather& gather, const float* table, const float* ids, float* to) {
  for (std::int64_t i = 0; i < gather.ids; ++i) {
    to = std::copy_n(table + checked_id(gather, ids, i) * gather.width, gather.width, to);
  }
}

void CpuArrayKernels::scatter_sum(const RowGather& gather, const float* from, const float* ids, float* table) {
  // Most rows of a table have no id in a batch, and their gradient is zero.
  std::fill_n(table, gather.table_rows * gather.width, 0.0F);
  for (std::int64_t i = 0; i < gather.ids; ++i) {
    float* const row = table + checked_id(gather, ids, i) * gather.width;
    // One thread, since two of them could meet in one row, and then the order would be theirs.
    for (std::int64_t column = 0; column < gather.width; ++column) row[column] += from[i * gather.width + column];
  }
}

}  // namespace holdfast::compute
