#pragma once

// Sums over samples in one order. Threads add their elements in a fixed order; then warps, blocks and grids are added
// in fixed trees. The numbers of threads and blocks depend on the shape alone, never on the device.
// docs/decisions/device-arithmetic.md

#include <cstdint>

#include "compute/cuda/runtime/cuda_launch.cuh"
#include "compute/cuda/runtime/cuda_sum_workspace.h"

namespace holdfast::compute {

inline constexpr int kWarp = 32;
inline constexpr int kSumThreads = 256;
inline constexpr unsigned kAllLanes = 0xFFFFFFFF;

// Every lane gets the same bits: in each round both partners add the same two numbers.
template <class Number>
__device__ Number warp_sum(Number value) {
  for (int partner = kWarp / 2; partner > 0; partner /= 2) value += __shfl_xor_sync(kAllLanes, value, partner);
  return value;
}

__device__ inline float warp_largest(float value) {
  for (int partner = kWarp / 2; partner > 0; partner /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, partner));
  }
  return value;
}

// All threads of the block call it, and all get the sum.
template <class Number>
__device__ Number block_sum(Number value) {
  __shared__ Number warps[kSumThreads / kWarp];
  value = warp_sum(value);
  __syncthreads();  // threads may still read the sums of the last call
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  Number sum = 0;
  for (int warp = 0; warp < kSumThreads / kWarp; ++warp) sum += warps[warp];
  return sum;
}

__device__ inline float block_largest(float value) {
  __shared__ float warps[kSumThreads / kWarp];
  value = warp_largest(value);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  for (int warp = 0; warp < kSumThreads / kWarp; ++warp) value = fmaxf(value, warps[warp]);
  return value;
}

// The index of the largest element of a row, the first of equal ones.
struct Candidate {
  float value;
  std::int64_t index;
};

__device__ inline Candidate better(const Candidate& a, const Candidate& b) {
  const bool is_b = b.value > a.value || (b.value == a.value && b.index < a.index);
  return is_b ? b : a;
}

__device__ inline Candidate warp_best(Candidate candidate) {
  for (int partner = kWarp / 2; partner > 0; partner /= 2) {
    const Candidate other = {__shfl_xor_sync(kAllLanes, candidate.value, partner),
                             __shfl_xor_sync(kAllLanes, candidate.index, partner)};
    candidate = better(candidate, other);
  }
  return candidate;
}

__device__ inline Candidate block_best(Candidate candidate) {
  __shared__ Candidate warps[kSumThreads / kWarp];
  candidate = warp_best(candidate);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = candidate;
  __syncthreads();
  for (int warp = 0; warp < kSumThreads / kWarp; ++warp) candidate = better(candidate, warps[warp]);
  return candidate;
}

// The threads that look at one row together.
struct WarpOfRow {
  static constexpr int kThreads = kWarp;
  __device__ static int rank() { return static_cast<int>(threadIdx.x % kWarp); }
  template <class Number>
  __device__ static Number sum(Number value) {
    return warp_sum(value);
  }
  __device__ static float largest(float value) { return warp_largest(value); }
  __device__ static Candidate best(const Candidate& candidate) { return warp_best(candidate); }
};

struct BlockOfRow {
  static constexpr int kThreads = kSumThreads;
  __device__ static int rank() { return static_cast<int>(threadIdx.x); }
  template <class Number>
  __device__ static Number sum(Number value) {
    return block_sum(value);
  }
  __device__ static float largest(float value) { return block_largest(value); }
  __device__ static Candidate best(const Candidate& candidate) { return block_best(candidate); }
};

// Calls use(i, load(i)) for i = first, first + step, ... below `end`. kBatch loads come before the stores of `use`. The
// compiler cannot reorder them itself, because a store might be to the same address.
template <int kBatch, class Load, class Use>
__device__ void for_each_loaded(std::int64_t first, std::int64_t step, std::int64_t end, const Load& load,
                                const Use& use) {
  for (; first < end; first += kBatch * step) {
    decltype(load(first)) loaded[kBatch] = {};
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (first + i * step < end) loaded[i] = load(first + i * step);
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (first + i * step < end) use(first + i * step, loaded[i]);
    }
  }
}

// The same for the thread's elements of a row.
template <class Group, class Load, class Use>
__device__ void for_each_of_row(Group group, std::int64_t length, const Load& load, const Use& use) {
  for_each_loaded<8>(group.rank(), Group::kThreads, length, load, use);
}

// *result = (sum of `value` over all threads of the grid) / divisor. The last block to finish adds the sums of all
// blocks, in the order of blocks, so it does not matter which block that is. It resets the counter to zero.
__device__ inline void finish_sum(double value, double divisor, SumWorkspace* workspace, float* result) {
  const double sum = block_sum(value);
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    workspace->block_sums[blockIdx.x] = sum;
    __threadfence();
    is_last = atomicInc(&workspace->finished_blocks, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  double total = 0;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kSumThreads) {
    // These loads bypass the first-level cache, which does not see the stores of other multiprocessors.
    total += __ldcg(&workspace->block_sums[block]);
  }
  total = block_sum(total);
  if (threadIdx.x == 0) *result = static_cast<float>(total / divisor);
}

// All threads of a group call `value_of(Group, row)`, which returns the row's summand to the first of them.
template <class Group, class Value>
__global__ void __launch_bounds__(kSumThreads)
    sum_rows_kernel(Value value_of, std::int64_t rows, double divisor, SumWorkspace* workspace, float* result) {
  constexpr int kGroups = kSumThreads / Group::kThreads;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kGroups + threadIdx.x / Group::kThreads;
  double sum = 0;
  for (std::int64_t row = first; row < rows; row += static_cast<std::int64_t>(gridDim.x) * kGroups) {
    sum += value_of(Group{}, row);
  }
  finish_sum(Group::rank() == 0 ? sum : 0, divisor, workspace, result);
}

struct OutputAndTarget {
  float output;
  float target;
};

// `value_of(index, output and target)` is the summand of an element.
template <class Value>
__global__ void __launch_bounds__(kSumThreads)
    sum_elements_kernel(Value value_of, const float* outputs, const float* targets, std::int64_t elements,
                        double divisor, SumWorkspace* workspace, float* result) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kSumThreads + threadIdx.x;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kSumThreads;
  double sum = 0;
  for_each_loaded<4>(
      first, stride, elements,
      [&](std::int64_t i) {
        return OutputAndTarget{outputs[i], targets[i]};
      },
      [&](std::int64_t i, const OutputAndTarget& at) { sum += value_of(i, at); });
  finish_sum(sum, divisor, workspace, result);
}

inline unsigned sum_blocks(std::int64_t count, std::int64_t per_block) {
  const unsigned blocks = block_count(count, per_block);
  return blocks < kMostSumBlocks ? blocks : kMostSumBlocks;
}

// Each row up to this length is computed by a warp, a longer one by a block.
inline constexpr std::int64_t kWarpRow = 1024;

// *result = sum / divisor.
template <class Value>
void sum_rows(const char* name, const Value& value_of, std::int64_t rows, std::int64_t row_length, double divisor,
              SumWorkspace* workspace, float* result, cudaStream_t stream) {
  if (row_length <= kWarpRow) {
    const unsigned blocks = sum_blocks(rows, kSumThreads / kWarp);
    launch(sum_rows_kernel<WarpOfRow, Value>, blocks, kSumThreads, stream, value_of, rows, divisor, workspace, result);
  } else {
    const unsigned blocks = sum_blocks(rows, 1);
    launch(sum_rows_kernel<BlockOfRow, Value>, blocks, kSumThreads, stream, value_of, rows, divisor, workspace, result);
  }
  check_launch(name, {{"rows", rows}, {"outputs", row_length}});
}

// *result = sum / divisor.
template <class Value>
void sum_elements(const char* name, const Value& value_of, const float* outputs, const float* targets,
                  std::int64_t elements, double divisor, SumWorkspace* workspace, float* result, cudaStream_t stream) {
  constexpr std::int64_t kElementsOfThread = 4;
  const unsigned blocks = sum_blocks(elements, kSumThreads * kElementsOfThread);
  launch(sum_elements_kernel<Value>, blocks, kSumThreads, stream, value_of, outputs, targets, elements, divisor,
         workspace, result);
  check_launch(name, {{"elements", elements}});
}

}  // namespace holdfast::compute
