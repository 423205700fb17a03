#pragma once

// The part of CUDA's language that kernels use, for a host's compiler and one thread at a time.

#include <cuda_runtime_api.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "emulation/grid.h"

#undef __global__
#undef __device__
#undef __shared__
#undef __launch_bounds__
#undef __grid_constant__
#define __global__
#define __device__
// Blocks may be threads of the host (races/fiber_grid.cpp), each with its own shared memory.
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __grid_constant__
#define threadIdx holdfast::emulation::thread_index
#define blockIdx holdfast::emulation::block_index
#define blockDim holdfast::emulation::block_size
#define gridDim holdfast::emulation::grid_size

inline void __syncthreads() {
  holdfast::emulation::wait_for_block();
}

inline void __threadfence() {
  holdfast::emulation::fence();
}

template <class Value>
Value __ldcg(const Value* place) {
  return *place;
}

// Several threads may store the same value at once.
inline void __stcg(unsigned* place, unsigned value) {
  __atomic_store_n(place, value, __ATOMIC_RELAXED);
}

template <class Value>
Value __shfl_xor_sync(unsigned mask, Value value, int partner, int = 32) {
  const unsigned lane = threadIdx.x % holdfast::emulation::kWarp;
  return holdfast::emulation::exchange(mask, value, lane ^ static_cast<unsigned>(partner));
}

template <class Value>
Value __shfl_sync(unsigned mask, Value value, int lane, int width = 32) {
  const unsigned own = threadIdx.x % holdfast::emulation::kWarp;
  const auto size = static_cast<unsigned>(width);
  return holdfast::emulation::exchange(mask, value, own / size * size + static_cast<unsigned>(lane) % size);
}

inline unsigned atomicInc(unsigned* place, unsigned largest) {
  unsigned before = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(place, &before, before >= largest ? 0 : before + 1, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
  holdfast::emulation::order_atomic(place);
  return before;
}

inline unsigned long long atomicMin(unsigned long long* place, unsigned long long value) {
  unsigned long long before = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (value < before &&
         !__atomic_compare_exchange_n(place, &before, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  holdfast::emulation::order_atomic(place);
  return before;
}

inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}

inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}

using std::isfinite;
using std::isnan;
