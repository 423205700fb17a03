#include "compute/cuda/columns.h"

#include <algorithm>

#include "compute/cuda/column_sums.cuh"

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

__global__ void add_bias(MatrixExtent extent, const float* bias, float* matrix) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kTileColumns + threadIdx.x;
  if (column >= extent.columns) return;
  const float added = bias[column];
  std::int64_t row = std::int64_t{blockIdx.y} * kTileRows + threadIdx.y;
  for (; row < extent.rows; row += std::int64_t{gridDim.y} * kTileRows) matrix[row * extent.columns + column] += added;
}

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
  constexpr unsigned kMaximumRowBlocks = 4096;
  const dim3 grid(block_count(extent.columns, kTileColumns),
                  std::min(block_count(extent.rows, kTileRows), kMaximumRowBlocks));
  add_bias<<<grid, dim3(kTileColumns, kTileRows), 0, stream>>>(extent, bias, matrix);
  check_launch(operation);
}

void sum_columns(cudaStream_t stream, const std::string& operation, const MatrixExtent& extent, const float* matrix,
                 std::byte* workspace, float* sums) {
  reduce_columns<1>(stream, operation, extent, Element{matrix}, Store{sums}, workspace);
}

}  // namespace holdfast::compute
