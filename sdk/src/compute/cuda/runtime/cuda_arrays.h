#pragma once

// The kernels of a memory space. All work is queued in `stream` and not waited for.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace holdfast::compute {

// sum[i] += summand[i]
void add_arrays(const float* summand, float* sum, std::size_t floats, cudaStream_t stream);

// Row i of `to` becomes row rows[i] of `from`; all three in device memory.
void gather_rows(const float* from, std::size_t row_floats, const std::int64_t* rows, std::size_t row_count, float* to,
                 cudaStream_t stream);

// The same, but `from` is registered memory of the host, by its address on the device. Uses only a few multiprocessors.
// They are enough to keep the link busy, and the others go on with the work of other streams.
void gather_host_rows(const float* from, std::size_t row_floats, const std::int64_t* rows, std::size_t row_count,
                      float* to, cudaStream_t stream);

// Sets *flag, in device memory, to 1 if one of the values is not finite. Never sets it to 0.
void flag_not_finite(const float* values, std::size_t floats, std::uint32_t* flag, cudaStream_t stream);

}  // namespace holdfast::compute
