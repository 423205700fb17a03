#pragma once

// Operations on the columns of a row-major matrix on the device: biases and their gradients. All calls only queue.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace holdfast::compute {

struct MatrixExtent {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// matrix[row, column] += bias[column]. `operation` names the kernel in errors.
void add_to_columns(cudaStream_t stream, const std::string& operation, const MatrixExtent& extent, const float* bias,
                    float* matrix);

// sums[column] = sum over rows of matrix[row, column], added in double and in an order that depends on the extent
// alone. `workspace` has column_sums_bytes().
void sum_columns(cudaStream_t stream, const std::string& operation, const MatrixExtent& extent, const float* matrix,
                 std::byte* workspace, float* sums);
// The workspace for `sums_per_column` sums at once.
std::size_t column_sums_bytes(const MatrixExtent& extent, int sums_per_column = 1);

// The chunks into which rows are cut. Each is added by blocks of its own.
struct RowChunks {
  std::int64_t count = 0;
  std::int64_t rows = 0;  // of each chunk; the last one may have fewer
};
RowChunks row_chunks(const MatrixExtent& extent);

}  // namespace holdfast::compute
