#pragma once

// What a memory space does with the elements of arrays on its device. All is queued in `stream`, and not waited for.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace holdfast::compute {

// sum[i] += summand[i]
void add_arrays(const float* summand, float* sum, std::size_t floats, cudaStream_t stream);

// Row i of `to` becomes row rows[i] of `from`; all three in device memory.
void gather_rows(const float* from, std::size_t row_floats, const std::int64_t* rows, std::size_t row_count, float* to,
                 cudaStream_t stream);

// The same, where `from` is where the device sees registered memory of the host. Takes a few of the multiprocessors:
// the link is slow enough for these, and what other streams compute goes on.
void gather_host_rows(const float* from, std::size_t row_floats, const std::int64_t* rows, std::size_t row_count,
                      float* to, cudaStream_t stream);

// *flag, in device memory, becomes 1 where one of the values is not finite; it is never set to zero.
void flag_not_finite(const float* values, std::size_t floats, std::uint32_t* flag, cudaStream_t stream);

}  // namespace holdfast::compute
