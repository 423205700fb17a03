#include "compute/cuda/products/transposed_arrays.h"

#include "compute/arithmetic/bfloat16.h"
#include "compute/cuda/runtime/cuda_launch.cuh"

namespace holdfast::compute {
namespace {

constexpr int kSide = 32;  // rows and columns of a block's tile of the matrix
constexpr int kLines = 8;  // lines of a tile that are moved at once
constexpr int kThreads = kSide * kLines;

__device__ void convert(float from, float* to) {
  *to = from;
}
__device__ void convert(float from, Bfloat16* to) {
  *to = round_to_bfloat16(__float_as_uint(from));
}
__device__ void convert(Bfloat16 from, float* to) {
  *to = __uint_as_float(widen_bfloat16(from));
}

// Tiles go through shared memory, so that neighbouring threads read and write neighbouring elements.
template <class From, class To>
__global__ void __launch_bounds__(kThreads)
    transpose_kernel(MatrixExtent extent, std::int64_t parts_of_a_row, const From* from, To* to) {
  // Rows have one element more than needed. Otherwise a whole column would lie in one bank.
  __shared__ From part[kSide][kSide + 1];
  const std::int64_t first_row = blockIdx.x / parts_of_a_row * kSide;
  const std::int64_t first_column = blockIdx.x % parts_of_a_row * kSide;
  const int lane = static_cast<int>(threadIdx.x) % kSide;
  const int first_line = static_cast<int>(threadIdx.x) / kSide;
  for (int line = first_line; line < kSide; line += kLines) {
    const std::int64_t row = first_row + line, column = first_column + lane;
    if (row < extent.rows && column < extent.columns) part[line][lane] = from[row * extent.columns + column];
  }
  // Every thread reads what others have loaded.
  __syncthreads();
  for (int line = first_line; line < kSide; line += kLines) {
    const std::int64_t row = first_row + lane, column = first_column + line;
    if (row < extent.rows && column < extent.columns) convert(part[lane][line], to + column * extent.rows + row);
  }
}

template <class From, class To>
void queue_transpose(const MatrixExtent& extent, const From* from, To* to, cudaStream_t stream) {
  if (extent.rows == 0 || extent.columns == 0) return;
  // Tiles at the edges are cut off in the kernel, so any extent is allowed.
  const std::int64_t parts_of_a_row = (extent.columns + kSide - 1) / kSide;
  const std::int64_t parts_of_a_column = (extent.rows + kSide - 1) / kSide;
  launch(transpose_kernel<From, To>, block_count(parts_of_a_row * parts_of_a_column, 1), kThreads, stream, extent,
         parts_of_a_row, from, to);
  check_launch("transpose", {{"rows", extent.rows}, {"columns", extent.columns}});
}

}  // namespace

void transpose(const MatrixExtent& extent, const float* from, float* to, cudaStream_t stream) {
  queue_transpose(extent, from, to, stream);
}

void transpose(const MatrixExtent& extent, const float* from, Bfloat16* to, cudaStream_t stream) {
  queue_transpose(extent, from, to, stream);
}

void transpose(const MatrixExtent& extent, const Bfloat16* from, float* to, cudaStream_t stream) {
  queue_transpose(extent, from, to, stream);
}

}  // namespace holdfast::compute
