#pragma once

// Marks functions that host and device share, so that one formula gives the same bits on both.

// A source that is compiled for one instruction set must leave no inline function to the linker, which might give it to
// callers on machines without that set. See compute/cpu/kernels/vector_kernels.h. For functions of the host alone.
#ifdef HOLDFAST_INSTRUCTION_SET
#define HOLDFAST_HOST_INLINE [[gnu::always_inline]]
#else
#define HOLDFAST_HOST_INLINE
#endif

#ifdef __CUDACC__
#define HOLDFAST_HOST_DEVICE __host__ __device__
#else
#define HOLDFAST_HOST_DEVICE HOLDFAST_HOST_INLINE
#endif

// Declares a constant array at namespace scope. Device code cannot read an array of the host, not even a constexpr one.
#ifdef __CUDA_ARCH__
#define HOLDFAST_SHARED_CONSTANT __device__ constexpr
#else
#define HOLDFAST_SHARED_CONSTANT inline constexpr
#endif
