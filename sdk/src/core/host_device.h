#pragma once

// Marks functions that host and device share, so that one formula gives the same bits on both.

#ifdef __CUDACC__
#define HOLDFAST_HOST_DEVICE __host__ __device__
#elif defined(HOLDFAST_INSTRUCTION_SET)
// A source that is compiled for one instruction set must leave no inline function to the linker, which might give it to
// callers on machines without that set. See compute/cpu/kernels/vector_kernels.h.
#define HOLDFAST_HOST_DEVICE [[gnu::always_inline]]
#else
#define HOLDFAST_HOST_DEVICE
#endif

// For a constant array at namespace scope. Device code cannot read an array of the host, not even a constexpr one.
#ifdef __CUDA_ARCH__
#define HOLDFAST_SHARED_CONSTANT __device__ constexpr
#else
#define HOLDFAST_SHARED_CONSTANT inline constexpr
#endif
