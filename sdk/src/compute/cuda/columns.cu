#include "compute/cuda/columns.h"

#include <algorithm>

#include "compute/cuda/column_sums.cuh"
#include "compute/cuda/cuda_elements.cuh"

namespace holdfast::compute {

std::int64_t row_chunks(std::int64_t rows) {
  constexpr std::int64_t kChunkRows = 64;
  constexpr std::int64_t kMaximumChunks = 256;
  return std::clamp(rows / kChunkRows, std::int64_t{1}, kMaximumChunks);
}

std::size_t column_sums_bytes(const MatrixExtent& extent, int sums_per_column) {
  return static_cast<std::size_t>(sums_per_column * row_chunks(extent.rows) * extent.columns) * sizeof(double);
}

namespace {

struct AddBiasPass {
  const float* bias;
  std::size_t columns;
  float* matrix;

  // A vector may begin anywhere in a row, and reach into the next ones.
  template <int kCount>
  __device__ void run(std::size_t index) const {
    FloatVector<kCount> values = load<kCount>(matrix, index);
    std::size_t column = index % columns;
    for (int i = 0; i < kCount; ++i) {
      values.at[i] += bias[column];
      column = column + 1 == columns ? 0 : column + 1;
    }
    store(matrix, index, values);
  }
};

struct Element {
  const float* matrix;

  __device__ void operator()(std::int64_t index, std::int64_t, double* sums) const { sums[0] += matrix[index]; }
};

struct Store {
  float* to;

  __device__ void operator()(std::int64_t column, const double* sums) const {
    to[column] = static_cast<float>(sums[0]);
  }
};

}  // namespace

void add_to_columns(cudaStream_t stream, const std::string& operation, const MatrixExtent& extent, const float* bias,
                    float* matrix) {
  const auto columns = static_cast<std::size_t>(extent.columns);
  run_pass(operation.c_str(), AddBiasPass{bias, columns, matrix}, static_cast<std::size_t>(extent.rows) * columns,
           {matrix}, stream);
}

void sum_columns(cudaStream_t stream, const std::string& operation, const MatrixExtent& extent, const float* matrix,
                 std::byte* workspace, float* sums) {
  reduce_columns<1>(stream, operation, extent, Element{matrix}, Store{sums}, workspace);
}

}  // namespace holdfast::compute
