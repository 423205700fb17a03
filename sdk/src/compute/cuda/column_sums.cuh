#pragma once

// Sums over the rows of a matrix, for each column, of terms that a functor gives: chunks of rows are added by blocks of
// their own, then the chunks' sums. All in double, so that hardly anything hangs on the order; which is fixed all the
// same, by the extent.

#include "compute/cuda/columns.h"
#include "compute/cuda/cuda_launch.cuh"

namespace holdfast::compute {

constexpr int kTileColumns = 32;
constexpr int kTileRows = 8;
constexpr int kTileThreads = kTileColumns * kTileRows;

// How many of a block's threads stand side by side in a row, a power of two: of few columns, no more than hold them, so
// that all threads have something to do.
inline int tile_columns(std::int64_t columns, int most) {
  int width = 1;
  while (width < most && width < columns) width *= 2;
  return width;
}

// Adds the tile's rows; the sums are in the first. Column `c` of row `r` is at r * width + c.
template <int kSums>
__device__ void add_tile_rows(double (&tile)[kSums][kTileThreads], int width) {
  __syncthreads();
  for (int distance = kTileThreads / 2; distance >= width; distance /= 2) {
    if (static_cast<int>(threadIdx.x) < distance) {
      for (int i = 0; i < kSums; ++i) tile[i][threadIdx.x] += tile[i][threadIdx.x + distance];
    }
    __syncthreads();
  }
}

// term(index, column, sums) adds what the element at `index` of `column` gives to each of the kSums sums. A tile is
// `width` columns wide; block `b` has tile b % tiles of chunk b / tiles.
template <int kSums, class Term>
__global__ void __launch_bounds__(kTileThreads)
    add_row_chunks(Term term, MatrixExtent extent, std::int64_t chunk_rows, int width, double* partial_sums) {
  __shared__ double tile[kSums][kTileThreads];
  const auto tiles = static_cast<unsigned>((extent.columns + width - 1) / width);
  const unsigned chunk = blockIdx.x / tiles;
  const std::int64_t column = std::int64_t{blockIdx.x % tiles} * width + threadIdx.x % width;
  const std::int64_t begin = chunk * chunk_rows;
  const std::int64_t end = begin + chunk_rows < extent.rows ? begin + chunk_rows : extent.rows;
  const int tile_rows = kTileThreads / width;
  double sums[kSums] = {};
  if (column < extent.columns) {
    // Where columns are few, so are the blocks: what is under way is up to each thread.
#pragma unroll 8
    for (std::int64_t row = begin + threadIdx.x / width; row < end; row += tile_rows) {
      term(row * extent.columns + column, column, sums);
    }
  }
  for (int i = 0; i < kSums; ++i) tile[i][threadIdx.x] = sums[i];
  add_tile_rows(tile, width);
  if (threadIdx.x >= static_cast<unsigned>(width) || column >= extent.columns) return;
  const std::int64_t chunks = gridDim.x / tiles;
  for (int i = 0; i < kSums; ++i) {
    partial_sums[(i * chunks + chunk) * extent.columns + column] = tile[i][threadIdx.x];
  }
}

// finish(column, sums) takes the column's sums.
template <int kSums, class Finish>
__global__ void __launch_bounds__(kTileThreads)
    finish_columns(Finish finish, std::int64_t columns, std::int64_t chunks, int width, const double* partial_sums) {
  __shared__ double tile[kSums][kTileThreads];
  const std::int64_t column = std::int64_t{blockIdx.x} * width + threadIdx.x % width;
  const int tile_rows = kTileThreads / width;
  double sums[kSums] = {};
  if (column < columns) {
#pragma unroll 8
    for (std::int64_t chunk = threadIdx.x / width; chunk < chunks; chunk += tile_rows) {
      for (int i = 0; i < kSums; ++i) sums[i] += partial_sums[(i * chunks + chunk) * columns + column];
    }
  }
  for (int i = 0; i < kSums; ++i) tile[i][threadIdx.x] = sums[i];
  add_tile_rows(tile, width);
  if (threadIdx.x >= static_cast<unsigned>(width) || column >= columns) return;
  for (int i = 0; i < kSums; ++i) sums[i] = tile[i][threadIdx.x];
  finish(column, sums);
}

// `workspace` has column_sums_bytes(extent, kSums).
template <int kSums, class Term, class Finish>
void reduce_columns(cudaStream_t stream, const std::string& operation, const MatrixExtent& extent, const Term& term,
                    const Finish& finish, std::byte* workspace) {
  // A tile of chunks is so narrow that it has a row for every eighth chunk at least.
  constexpr int kFinishColumns = 8;
  const std::int64_t chunks = row_chunks(extent.rows);
  const std::int64_t chunk_rows = (extent.rows + chunks - 1) / chunks;
  double* const partial_sums = reinterpret_cast<double*>(workspace);
  const int width = tile_columns(extent.columns, kTileColumns);
  const unsigned blocks = block_count(block_count(extent.columns, width) * chunks, 1);
  launch(add_row_chunks<kSums, Term>, blocks, kTileThreads, stream, term, extent, chunk_rows, width, partial_sums);
  check_launch(operation.c_str(), {{"rows", extent.rows}, {"columns", extent.columns}});
  const int finish_width = tile_columns(extent.columns, kFinishColumns);
  launch(finish_columns<kSums, Finish>, block_count(extent.columns, finish_width), kTileThreads, stream, finish,
         extent.columns, chunks, finish_width, partial_sums);
  check_launch(operation.c_str(), {{"chunks", chunks}, {"columns", extent.columns}});
}

}  // namespace holdfast::compute
