#pragma once

// Conversions between f32 and bfloat16. All work is queued in `stream` and not waited for.

#include <cuda_runtime_api.h>

#include "compute/cuda/products/bfloat16_matrix.h"

namespace holdfast::compute {

// Rounds each element as round_to_bfloat16() does, and writes the padding. `from` has no gaps and any alignment; `to`
// must be aligned to 16 bytes. Bits depend on neither shape nor alignment.
void round_to_bfloat16(const Bfloat16Matrix& matrix, const float* from, Bfloat16* to, cudaStream_t stream);

// Widens an array, which changes no value. `from` must be aligned to 16 bytes.
void widen_bfloat16(std::int64_t count, const Bfloat16* from, float* to, cudaStream_t stream);

}  // namespace holdfast::compute
