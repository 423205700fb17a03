#pragma once

// Sums over the rows of a matrix, for each column, of terms that a functor gives: chunks of rows are added by blocks of
// their own, then the chunks' sums one after the other. All in double, so that hardly anything hangs on the order;
// which is fixed all the same.

#include "compute/cuda/columns.h"
#include "compute/cuda/cuda_error.h"
#include "compute/cuda/cuda_launch.h"

namespace holdfast::compute {

constexpr int kTileColumns = 32;
constexpr int kTileRows = 8;

// term(index, column, sums) adds what the element at `index` of `column` gives to each of the kSums sums.
template <int kSums, class Term>
__global__ void add_row_chunks(Term term, MatrixExtent extent, std::int64_t chunk_rows, double* partial_sums) {
  __shared__ double tile[kSums][kTileRows][kTileColumns];
  const std::int64_t column = std::int64_t{blockIdx.x} * kTileColumns + threadIdx.x;
  const std::int64_t begin = std::int64_t{blockIdx.y} * chunk_rows;
  const std::int64_t end = begin + chunk_rows < extent.rows ? begin + chunk_rows : extent.rows;
  double sums[kSums] = {};
  if (column < extent.columns) {
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kTileRows) {
      term(row * extent.columns + column, column, sums);
    }
  }
  for (int i = 0; i < kSums; ++i) tile[i][threadIdx.y][threadIdx.x] = sums[i];
  __syncthreads();
  if (threadIdx.y != 0 || column >= extent.columns) return;
  for (int i = 0; i < kSums; ++i) {
    double sum = 0;
    for (int row = 0; row < kTileRows; ++row) sum += tile[i][row][threadIdx.x];
    partial_sums[(i * std::int64_t{gridDim.y} + blockIdx.y) * extent.columns + column] = sum;
  }
}

// finish(column, sums) takes the column's sums.
template <int kSums, class Finish>
__global__ void finish_columns(Finish finish, std::int64_t columns, std::int64_t chunks, const double* partial_sums) {
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  double sums[kSums] = {};
  for (int i = 0; i < kSums; ++i) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      sums[i] += partial_sums[(i * chunks + chunk) * columns + column];
    }
  }
  finish(column, sums);
}

// `workspace` has column_sums_bytes(extent, kSums).
template <int kSums, class Term, class Finish>
void reduce_columns(cudaStream_t stream, const std::string& operation, const MatrixExtent& extent, const Term& term,
                    const Finish& finish, std::byte* workspace) {
  constexpr int kFinishThreads = 64;
  const std::int64_t chunks = row_chunks(extent.rows);
  const std::int64_t chunk_rows = (extent.rows + chunks - 1) / chunks;
  double* const partial_sums = reinterpret_cast<double*>(workspace);
  const dim3 grid(block_count(extent.columns, kTileColumns), static_cast<unsigned>(chunks));
  add_row_chunks<kSums><<<grid, dim3(kTileColumns, kTileRows), 0, stream>>>(term, extent, chunk_rows, partial_sums);
  check_launch(operation);
  finish_columns<kSums><<<block_count(extent.columns, kFinishThreads), kFinishThreads, 0, stream>>>(
      finish, extent.columns, chunks, partial_sums);
  check_launch(operation);
}

}  // namespace holdfast::compute
