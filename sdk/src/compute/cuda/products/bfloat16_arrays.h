#pragma once

// From f32 to bfloat16 and back. All is queued in `stream`, and not waited for.

#include <cuda_runtime_api.h>

#include "compute/cuda/products/bfloat16_matrix.h"

namespace holdfast::compute {

// `from` is without gaps, and lies wherever a float may. `to`, aligned to 16 bytes, gets the matrix with its padding:
// each element as round_to_bfloat16() has it, whatever the shape and the place.
void round_to_bfloat16(const Bfloat16Matrix& matrix, const float* from, Bfloat16* to, cudaStream_t stream);

// Of an array; `from` is aligned to 16 bytes. No value changes.
void widen_bfloat16(std::int64_t count, const Bfloat16* from, float* to, cudaStream_t stream);

}  // namespace holdfast::compute
