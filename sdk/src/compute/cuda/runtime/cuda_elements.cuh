#pragma once

// Passes over arrays in which each element is computed by itself. A thread computes four elements if the arrays are
// aligned for that, which it takes to use the whole bandwidth of the memory.

#include <cstddef>
#include <cstdint>

#include "compute/cuda/runtime/cuda_launch.cuh"

namespace holdfast::compute {

inline constexpr int kElementThreads = 256;
inline constexpr int kVectorFloats = 4;

// kCount floats that are loaded or stored in one access.
template <int kCount>
struct alignas(kCount * sizeof(float)) FloatVector {
  float at[kCount];
};

// The index of the calling thread's first element, in a kernel with blocks of kElementThreads.
template <int kCount>
__device__ std::int64_t first_element() {
  return (std::int64_t{blockIdx.x} * kElementThreads + threadIdx.x) * kCount;
}

template <int kCount>
__device__ FloatVector<kCount> load(const float* array, std::size_t index) {
  return *reinterpret_cast<const FloatVector<kCount>*>(array + index);
}

template <int kCount>
__device__ void store(float* array, std::size_t index, const FloatVector<kCount>& values) {
  *reinterpret_cast<FloatVector<kCount>*>(array + index) = values;
}

// `pass.run<kCount>(index)` computes kCount elements from `index` on.
template <int kCount, class Pass>
__global__ void __launch_bounds__(kElementThreads) elements_kernel(Pass pass, std::size_t floats) {
  const std::size_t index = (static_cast<std::size_t>(blockIdx.x) * kElementThreads + threadIdx.x) * kCount;
  if (index + kCount <= floats) {
    pass.template run<kCount>(index);
  } else {
    for (std::size_t rest = index; rest < floats; ++rest) pass.template run<1>(rest);
  }
}

inline bool is_aligned_for_vectors(std::initializer_list<const float*> arrays) {
  std::uintptr_t addresses = 0;
  for (const float* const array : arrays) addresses |= reinterpret_cast<std::uintptr_t>(array);
  return addresses % (kVectorFloats * sizeof(float)) == 0;
}

template <class Pass>
void run_pass(const char* name, const Pass& pass, std::size_t floats, bool in_vectors, cudaStream_t stream) {
  if (floats == 0) return;
  const auto count = static_cast<std::int64_t>(floats);
  if (in_vectors) {
    const unsigned blocks = block_count(count, kElementThreads * kVectorFloats);
    launch(elements_kernel<kVectorFloats, Pass>, blocks, kElementThreads, stream, pass, floats);
  } else {
    launch(elements_kernel<1, Pass>, block_count(count, kElementThreads), kElementThreads, stream, pass, floats);
  }
  check_launch(name, {{"floats", count}});
}

// `arrays` are all arrays that the pass reads or writes; null pointers count as aligned.
template <class Pass>
void run_pass(const char* name, const Pass& pass, std::size_t floats, std::initializer_list<const float*> arrays,
              cudaStream_t stream) {
  run_pass(name, pass, floats, is_aligned_for_vectors(arrays), stream);
}

}  // namespace holdfast::compute
