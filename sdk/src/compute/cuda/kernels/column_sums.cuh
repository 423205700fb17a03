#pragma once

// Sums over the rows of a matrix, for each column, of terms that a functor computes. Each chunk of rows is added by
// blocks of its own; then the sums of the chunks are added. All sums are in double, and the extent fixes their order.
// docs/decisions/device-arithmetic.md

#include "compute/cuda/kernels/columns.h"
#include "compute/cuda/runtime/cuda_launch.cuh"
#include "core/host_device.h"

namespace holdfast::compute {

constexpr int kTileThreadBits = 8;
constexpr int kTileThreads = 1 << kTileThreadBits;
constexpr int kTileBits = 5;  // see TileWidth: a warp reads 128 consecutive bytes

// How many threads of a block work on the same row. If there are few columns, no more than there are columns, so that
// no thread is idle. A power of two, so that no thread has to divide by it.
struct TileWidth {
  int bits;

  TileWidth(std::int64_t columns, int most_bits) : bits(0) {
    while (bits < most_bits && std::int64_t{1} << bits < columns) ++bits;
  }

  HOLDFAST_HOST_DEVICE int bits_of_rows() const { return kTileThreadBits - bits; }
  HOLDFAST_HOST_DEVICE int columns() const { return 1 << bits; }
  HOLDFAST_HOST_DEVICE int rows() const { return 1 << bits_of_rows(); }
  __device__ int column_of_thread() const { return static_cast<int>(threadIdx.x) & (columns() - 1); }
  __device__ int row_of_thread() const { return static_cast<int>(threadIdx.x) >> bits; }
  std::int64_t tiles(std::int64_t of_columns) const { return (of_columns + columns() - 1) >> bits; }
};

// A thread loads so many rows at once, which keeps the memory busy if there are few blocks. With this launch bound
// ptxas gives a thread enough registers for that. Without it, ptxas uses 32 registers and waits for one row before it
// loads the next (CUDA 13.0, sm_90: 40 registers for one sum, 48 for two).
constexpr int kBatchRows = 8;
constexpr int kLeastBlocksPerProcessor = 5;

// Calls terms.add(terms.load(index), sums) for the thread's elements of `column` in the rows from `begin` to `end`.
template <int kSums, class Terms>
__device__ void add_rows(const Terms& terms, std::int64_t begin, std::int64_t end, std::int64_t column,
                         std::int64_t columns, TileWidth width, double (&sums)[kSums]) {
  const std::int64_t first = begin + width.row_of_thread();
  const std::int64_t step = columns << width.bits_of_rows();
  std::int64_t index = first * columns + column;
  int rest = static_cast<int>((end - first + width.rows() - 1) >> width.bits_of_rows());
#pragma unroll 1
  for (; rest >= kBatchRows; rest -= kBatchRows, index += kBatchRows * step) {
    typename Terms::Loaded loaded[kBatchRows];
#pragma unroll
    for (int i = 0; i < kBatchRows; ++i) loaded[i] = terms.load(index + i * step);
#pragma unroll
    for (int i = 0; i < kBatchRows; ++i) terms.add(loaded[i], sums);
  }
  if (rest <= 0) return;
  // The remaining rows are one more batch, in which some row is loaded twice. Loading them one by one would be slower.
  typename Terms::Loaded loaded[kBatchRows];
#pragma unroll
  for (int i = 0; i < kBatchRows; ++i) loaded[i] = terms.load(index + (i < rest ? i : 0) * step);
#pragma unroll
  for (int i = 0; i < kBatchRows; ++i) {
    if (i < rest) terms.add(loaded[i], sums);
  }
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

// term.of(column) has load(index), which reads the element at `index`, and add(loaded, sums), which adds its terms to
// the kSums sums. Block `b` computes tile b % tiles of chunk b / tiles.
template <int kSums, class Term>
__global__ void __launch_bounds__(kTileThreads, kLeastBlocksPerProcessor)
    add_row_chunks(Term term, MatrixExtent extent, RowChunks chunks, TileWidth width, unsigned tiles,
                   double* partial_sums) {
  __shared__ double tile[kSums][kTileThreads];
  const unsigned chunk = blockIdx.x / tiles;
  const std::int64_t column = (std::int64_t{blockIdx.x - chunk * tiles} << width.bits) + width.column_of_thread();
  const std::int64_t begin = chunk * chunks.rows;
  const std::int64_t end = begin + chunks.rows < extent.rows ? begin + chunks.rows : extent.rows;
  double sums[kSums] = {};
  if (column < extent.columns) {
    add_rows(term.of(column), begin, end, column, extent.columns, width, sums);
  }
  for (int i = 0; i < kSums; ++i) tile[i][threadIdx.x] = sums[i];
  add_tile_rows(tile, width.columns());
  if (width.row_of_thread() > 0 || column >= extent.columns) return;
  for (int i = 0; i < kSums; ++i) {
    partial_sums[(i * chunks.count + chunk) * extent.columns + column] = tile[i][threadIdx.x];
  }
}

template <int kSums>
struct ChunkSums {
  struct Loaded {
    double sums[kSums];
  };
  const double* partial_sums;
  std::int64_t elements;  // the number of partial sums of each kind

  __device__ Loaded load(std::int64_t index) const {
    Loaded loaded;
    for (int i = 0; i < kSums; ++i) loaded.sums[i] = partial_sums[i * elements + index];
    return loaded;
  }
  __device__ void add(const Loaded& loaded, double (&sums)[kSums]) const {
    for (int i = 0; i < kSums; ++i) sums[i] += loaded.sums[i];
  }
};

// finish(column, sums) takes the column's sums.
template <int kSums, class Finish>
__global__ void __launch_bounds__(kTileThreads) finish_columns(Finish finish, std::int64_t columns, std::int64_t chunks,
                                                               TileWidth width, const double* partial_sums) {
  __shared__ double tile[kSums][kTileThreads];
  const std::int64_t column = (std::int64_t{blockIdx.x} << width.bits) + width.column_of_thread();
  double sums[kSums] = {};
  if (column < columns) {
    add_rows(ChunkSums<kSums>{partial_sums, chunks * columns}, 0, chunks, column, columns, width, sums);
  }
  for (int i = 0; i < kSums; ++i) tile[i][threadIdx.x] = sums[i];
  add_tile_rows(tile, width.columns());
  if (width.row_of_thread() > 0 || column >= columns) return;
  for (int i = 0; i < kSums; ++i) sums[i] = tile[i][threadIdx.x];
  finish(column, sums);
}

// `workspace` has column_sums_bytes(extent, kSums).
template <int kSums, class Term, class Finish>
void reduce_columns(cudaStream_t stream, const std::string& operation, const MatrixExtent& extent, const Term& term,
                    const Finish& finish, std::byte* workspace) {
  // A tile of chunks is so narrow that it has a row for every eighth chunk at least.
  constexpr int kFinishBits = 3;
  const RowChunks chunks = row_chunks(extent);
  double* const partial_sums = reinterpret_cast<double*>(workspace);
  const TileWidth width(extent.columns, kTileBits);
  const std::int64_t tiles = width.tiles(extent.columns);
  launch(add_row_chunks<kSums, Term>, block_count(tiles * chunks.count, 1), kTileThreads, stream, term, extent, chunks,
         width, static_cast<unsigned>(tiles), partial_sums);
  check_launch(operation.c_str(), {{"rows", extent.rows}, {"columns", extent.columns}});
  const TileWidth finish_width(extent.columns, kFinishBits);
  launch(finish_columns<kSums, Finish>, block_count(finish_width.tiles(extent.columns), 1), kTileThreads, stream,
         finish, extent.columns, chunks.count, finish_width, partial_sums);
  check_launch(operation.c_str(), {{"chunks", chunks.count}, {"columns", extent.columns}});
}

}  // namespace holdfast::compute
