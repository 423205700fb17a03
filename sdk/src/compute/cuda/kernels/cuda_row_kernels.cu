// The kernels of rows on CUDA devices. A thread of scatter_sum adds one column of the table, in the order of the ids,
// as the host does: atomics would add in another order each time.

#include "compute/arithmetic/row_elements.h"
#include "compute/cuda/kernels/cuda_array_kernels.h"
#include "compute/cuda/runtime/cuda_elements.cuh"

namespace holdfast::compute {
namespace {

__global__ void __launch_bounds__(kElementThreads)
    row_conversion_kernel(const __grid_constant__ RowConversion conversion, const float* from, float* to) {
  const std::int64_t index = first_element<1>();
  if (index >= conversion.rows * conversion.elements) return;
  const float* const array = from + index / conversion.elements * conversion.row_words + conversion.first_word;
  const bool is_copied = conversion.from == conversion.to;
  to[index] = is_copied
                  ? array[index % conversion.elements]
                  : converted_element(conversion.from, conversion.to == DType::f32, array, index % conversion.elements);
}

__device__ bool is_in_table(const RowGather& gather, std::int32_t id) {
  return id >= 0 && id < gather.table_rows;
}

__global__ void __launch_bounds__(kElementThreads)
    row_gather_kernel(const __grid_constant__ RowGather gather, const float* table, const float* ids, float* to) {
  const std::int64_t index = first_element<1>();
  if (index >= gather.ids * gather.width) return;
  const std::int32_t id = read_element<std::int32_t>(ids, index / gather.width);
  // A kernel cannot throw. A NaN reaches the loss, where the step notices it.
  to[index] = is_in_table(gather, id) ? table[id * gather.width + index % gather.width] : float_of_bits(0x7FC00000U);
}

__global__ void __launch_bounds__(kElementThreads)
    row_scatter_kernel(const __grid_constant__ RowGather gather, const float* from, const float* ids, float* table) {
  const std::int64_t column = first_element<1>();
  if (column >= gather.width) return;
  // The thread owns its column, so no other one needs to have cleared it before.
  for (std::int64_t row = 0; row < gather.table_rows; ++row) table[row * gather.width + column] = 0;
  for (std::int64_t i = 0; i < gather.ids; ++i) {
    const std::int32_t id = read_element<std::int32_t>(ids, i);
    // A wrong id has given a NaN in the forward pass, and adds nothing here.
    if (is_in_table(gather, id)) table[id * gather.width + column] += from[i * gather.width + column];
  }
}

}  // namespace

void CudaArrayKernels::convert(const RowConversion& conversion, const float* from, float* to) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  const std::int64_t count = conversion.rows * conversion.elements;
  if (count == 0) return;
  launch(row_conversion_kernel, block_count(count, kElementThreads), kElementThreads, context_.stream(), conversion,
         from, to);
  check_launch("row conversion", {{"elements", count}});
}

void CudaArrayKernels::gather(const RowGather& gather, const float* table, const float* ids, float* to) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  const std::int64_t count = gather.ids * gather.width;
  if (count == 0) return;
  launch(row_gather_kernel, block_count(count, kElementThreads), kElementThreads, context_.stream(), gather, table, ids,
         to);
  check_launch("row gather", {{"floats", count}});
}

void CudaArrayKernels::scatter_sum(const RowGather& gather, const float* from, const float* ids, float* table) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  // Also without ids, since the table must become zero.
  launch(row_scatter_kernel, block_count(gather.width, kElementThreads), kElementThreads, context_.stream(), gather,
         from, ids, table);
  check_launch("row scatter", {{"columns", gather.width}});
}

}  // namespace holdfast::compute
