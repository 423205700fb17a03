#pragma once

// Transposes matrices without gaps: convolution kernels on their way to cuDNN and back. All work is queued in `stream`
// and not waited for.

#include <cuda_runtime_api.h>

#include "compute/cuda/kernels/columns.h"
#include "compute/cuda/products/bfloat16_matrix.h"

namespace holdfast::compute {

// to[column, row] = from[row, column]; `extent` is that of `from`. Conversions are those of round_to_bfloat16() and
// widen_bfloat16().
void transpose(const MatrixExtent& extent, const float* from, float* to, cudaStream_t stream);
void transpose(const MatrixExtent& extent, const float* from, Bfloat16* to, cudaStream_t stream);
void transpose(const MatrixExtent& extent, const Bfloat16* from, float* to, cudaStream_t stream);

}  // namespace holdfast::compute
