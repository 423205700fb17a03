// Sums of columns are those of column_sums.cuh. This source says into how many chunks the rows of a matrix are cut, and
// so in which order each of these sums is added.

#include "compute/cuda/kernels/columns.h"

#include <algorithm>

#include "compute/cuda/kernels/column_sums.cuh"
#include "compute/cuda/runtime/cuda_elements.cuh"

namespace holdfast::compute {

// Either no more blocks than a large device runs at once, or several waves of them: a nearly empty second wave takes as
// long as a full one. There are few chunks, because each has an overhead of about a hundred rows.
RowChunks row_chunks(const MatrixExtent& extent) {
  constexpr std::int64_t kBlocks = 128 * kLeastBlocksPerProcessor;
  constexpr std::int64_t kLeastChunks = 4;
  constexpr std::int64_t kLeastRows = 64;
  const std::int64_t tiles = TileWidth(extent.columns, kTileBits).tiles(extent.columns);
  const std::int64_t most = std::max(extent.rows / kLeastRows, std::int64_t{1});
  const std::int64_t wanted = std::min(std::max(kBlocks / tiles, kLeastChunks), most);
  // The chunks depend on the shape alone, and never on the device: they are a part of the order of the sum.
  const std::int64_t rows = std::max((extent.rows + wanted - 1) / wanted, std::int64_t{1});
  return {.count = std::max((extent.rows + rows - 1) / rows, std::int64_t{1}), .rows = rows};
}

std::size_t column_sums_bytes(const MatrixExtent& extent, int sums_per_column) {
  return static_cast<std::size_t>(sums_per_column * row_chunks(extent).count * extent.columns) * sizeof(double);
}

namespace {

struct AddBiasPass {
  const float* bias;
  std::size_t columns;
  float* matrix;

  // A vector may begin anywhere in a row and reach into the next rows.
  template <int kCount>
  __device__ void run(std::size_t index) const {
    FloatVector<kCount> values = load<kCount>(matrix, index);
    std::size_t column = index % columns;
    for (int i = 0; i < kCount; ++i) {
      values.at[i] += bias[column];
      // A division for each element would take longer than the addition.
      column = column + 1 == columns ? 0 : column + 1;
    }
    store(matrix, index, values);
  }
};

struct Element {
  using Loaded = float;
  const float* matrix;

  __device__ Element of(std::int64_t) const { return *this; }
  __device__ float load(std::int64_t index) const { return matrix[index]; }
  __device__ void add(float element, double (&sums)[1]) const { sums[0] += element; }
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
