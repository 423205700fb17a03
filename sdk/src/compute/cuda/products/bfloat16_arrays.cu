// Rounds arrays to bf16 for products, and widens results back to f32. The rounding is our own code on the
// bits (arithmetic/bfloat16.h), so that the host's tests have it too. A thread moves a group of elements that
// fills one access of 16 bytes. docs/decisions/device-arithmetic.md

#include "compute/arithmetic/bfloat16.h"
#include "compute/cuda/products/bfloat16_arrays.h"
#include "compute/cuda/runtime/cuda_elements.cuh"

namespace holdfast::compute {
namespace {

constexpr int kGroup = static_cast<int>(Bfloat16Matrix::kGroup);

// As many elements as one store moves.
struct alignas(kWidestAccess) Bfloat16Vector {
  Bfloat16 at[kGroup];
};

// Each thread rounds a group of a row. It loads the group in two accesses if rows are aligned for that.
template <bool kIsAligned>
__global__ void __launch_bounds__(kElementThreads)
    round_kernel(Bfloat16Matrix matrix, const float* from, Bfloat16* to) {
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * kElementThreads + threadIdx.x;
  if (group >= matrix.rows * matrix.row_groups()) return;
  // An array has one row, and needs no division.
  const std::int64_t row = matrix.rows == 1 ? 0 : group / matrix.row_groups();
  const std::int64_t column = (group - row * matrix.row_groups()) * kGroup;
  const float* const source = from + row * matrix.columns + column;
  Bfloat16Vector rounded;
  if (kIsAligned && column + kGroup <= matrix.columns) {
    for (int begin = 0; begin < kGroup; begin += kVectorFloats) {
      const FloatVector<kVectorFloats> values = load<kVectorFloats>(source, begin);
      for (int i = 0; i < kVectorFloats; ++i) {
        rounded.at[begin + i] = round_to_bfloat16(__float_as_uint(values.at[i]));
      }
    }
  } else {
    for (int i = 0; i < kGroup; ++i) {
      // The padding of a row is zero, which adds nothing to a product.
      rounded.at[i] = column + i < matrix.columns ? round_to_bfloat16(__float_as_uint(source[i])) : Bfloat16{0};
    }
  }
  *reinterpret_cast<Bfloat16Vector*>(to + group * kGroup) = rounded;
}

template <bool kIsAligned>
__global__ void __launch_bounds__(kElementThreads) widen_kernel(std::int64_t count, const Bfloat16* from, float* to) {
  const std::int64_t begin = (static_cast<std::int64_t>(blockIdx.x) * kElementThreads + threadIdx.x) * kGroup;
  if (kIsAligned && begin + kGroup <= count) {
    const Bfloat16Vector rounded = *reinterpret_cast<const Bfloat16Vector*>(from + begin);
    for (int part = 0; part < kGroup; part += kVectorFloats) {
      FloatVector<kVectorFloats> values;
      for (int i = 0; i < kVectorFloats; ++i) values.at[i] = __uint_as_float(widen_bfloat16(rounded.at[part + i]));
      store(to, static_cast<std::size_t>(begin + part), values);
    }
    return;
  }
  for (std::int64_t i = begin; i < begin + kGroup && i < count; ++i) to[i] = __uint_as_float(widen_bfloat16(from[i]));
}

// Rows without padding are treated as one row.
Bfloat16Matrix flattened(const Bfloat16Matrix& matrix) {
  if (matrix.row_stride() != matrix.columns) return matrix;
  return {.rows = 1, .columns = matrix.rows * matrix.columns};
}

}  // namespace

void round_to_bfloat16(const Bfloat16Matrix& matrix, const float* from, Bfloat16* to, cudaStream_t stream) {
  const Bfloat16Matrix flat = flattened(matrix);
  const std::int64_t groups = flat.rows * flat.row_groups();
  if (groups == 0) return;
  // In a single row, only the begin of the array must be aligned.
  const bool are_rows_aligned = flat.rows == 1 || flat.columns % kVectorFloats == 0;
  const auto kernel = are_rows_aligned && is_aligned_for_vectors({from}) ? round_kernel<true> : round_kernel<false>;
  launch(kernel, block_count(groups, kElementThreads), kElementThreads, stream, flat, from, to);
  check_launch("round_to_bfloat16", {{"rows", matrix.rows}, {"columns", matrix.columns}});
}

void widen_bfloat16(std::int64_t count, const Bfloat16* from, float* to, cudaStream_t stream) {
  if (count == 0) return;
  const auto kernel = is_aligned_for_vectors({to}) ? widen_kernel<true> : widen_kernel<false>;
  launch(kernel, block_count(count, kElementThreads * kGroup), kElementThreads, stream, count, from, to);
  check_launch("widen_bfloat16", {{"floats", count}});
}

}  // namespace holdfast::compute
