#pragma once

// Marks what host and device share: one formula, the same bits on both.

#ifdef __CUDACC__
#define HOLDFAST_HOST_DEVICE __host__ __device__
#else
#define HOLDFAST_HOST_DEVICE
#endif

// A constant array of namespace scope: device code may read no array of the host's, not even a constexpr one.
#ifdef __CUDA_ARCH__
#define HOLDFAST_SHARED_CONSTANT __device__ constexpr
#else
#define HOLDFAST_SHARED_CONSTANT inline constexpr
#endif
