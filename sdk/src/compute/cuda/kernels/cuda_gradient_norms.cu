// Gradient clipping by norms on CUDA devices: squares are summed by chunks, the sums become a scale for each
// range, and the scale multiplies the gradients. The order of addition is that of
// arithmetic/gradient_clipping.h, so host and device get the same bits. The scales stay on the device, so no
// thread waits for them. docs/decisions/optimizers.md

#include <algorithm>
#include <cstdint>

#include "compute/arithmetic/gradient_clipping.h"
#include "compute/cuda/kernels/cuda_gradient_norms.h"
#include "compute/cuda/runtime/cuda_launch.cuh"

namespace holdfast::compute {
namespace {

// Passed by value with the launch, like the gaps in cuda_optimizers.cu, within its 4 KiB of arguments.
struct NormTable {
  static constexpr int kMost = 128;

  struct Entry {
    NormRange range;
    unsigned first_chunk;  // counted over the whole table
  };

  // The last entry that begins at or before the chunk. An entry without chunks begins where the next one does.
  __device__ int entry_of(unsigned chunk) const {
    int found = 0;
    for (int beyond = count; beyond - found > 1;) {
      const int middle = (found + beyond) / 2;
      if (at[middle].first_chunk <= chunk) {
        found = middle;
      } else {
        beyond = middle;
      }
    }
    return found;
  }

  Entry at[kMost];
  int count;
};

constexpr auto kNormThreads = static_cast<unsigned>(kNormLanes);

// Returns the sum to the first thread. May be called once in a kernel.
__device__ double sum_of_lanes(double value) {
  __shared__ double lanes[kNormThreads];
  lanes[threadIdx.x] = value;
  // The tree of gradient_clipping.h: lane i and lane i + half, so the host adds the same pairs.
  for (unsigned half = kNormThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) lanes[threadIdx.x] += lanes[threadIdx.x + half];
  }
  return lanes[0];
}

__device__ NormRange chunk_of(const NormTable::Entry& entry, unsigned chunk) {
  const std::size_t begin = entry.range.begin + (chunk - entry.first_chunk) * kNormChunk;
  const std::size_t end = begin + kNormChunk;
  return {begin, end < entry.range.end ? end : entry.range.end};
}

// A block a chunk.
__global__ void __launch_bounds__(kNormThreads)
    add_squares_kernel(const __grid_constant__ NormTable table, const float* gradients, double* chunk_sums) {
  const NormRange chunk = chunk_of(table.at[table.entry_of(blockIdx.x)], blockIdx.x);
  double sum = 0;
#pragma unroll 4
  for (std::size_t i = chunk.begin + threadIdx.x; i < chunk.end; i += kNormThreads) {
    // In double, in which the square of a float is exact.
    const double gradient = gradients[i];
    sum += gradient * gradient;
  }
  sum = sum_of_lanes(sum);
  if (threadIdx.x == 0) chunk_sums[blockIdx.x] = sum;
}

// One block for each range.
__global__ void __launch_bounds__(kNormThreads)
    find_scales_kernel(const __grid_constant__ NormTable table, const double* chunk_sums, float limit, float* scales) {
  const NormTable::Entry& entry = table.at[blockIdx.x];
  const std::size_t chunks = norm_chunks(entry.range);
  double sum = 0;
  // A range may have many chunks, as a global norm has. One block adds them, in the same lanes.
  for (std::size_t i = threadIdx.x; i < chunks; i += kNormThreads) sum += chunk_sums[entry.first_chunk + i];
  sum = sum_of_lanes(sum);
  if (threadIdx.x == 0) scales[blockIdx.x] = norm_scale(sum, limit);
}

// A block a chunk.
__global__ void __launch_bounds__(kNormThreads)
    scale_kernel(const __grid_constant__ NormTable table, const float* scales, const float* gradients, float* clipped) {
  const int entry = table.entry_of(blockIdx.x);
  const NormRange chunk = chunk_of(table.at[entry], blockIdx.x);
  const float scale = scales[entry];
#pragma unroll 4
  for (std::size_t i = chunk.begin + threadIdx.x; i < chunk.end; i += kNormThreads) {
    clipped[i] = gradients[i] * scale;
  }
}

struct NormArrays {
  const float* gradients;
  float* clipped;
  float* workspace;
};

void queue_table(const NormTable& table, unsigned chunks, float limit, const NormArrays& arrays, cudaStream_t stream) {
  auto* const chunk_sums = reinterpret_cast<double*>(arrays.workspace);
  auto* const scales = reinterpret_cast<float*>(chunk_sums + chunks);
  launch(add_squares_kernel, chunks, kNormThreads, stream, table, arrays.gradients, chunk_sums);
  check_launch("squares of clip_norms", {{"chunks", chunks}});
  launch(find_scales_kernel, static_cast<unsigned>(table.count), kNormThreads, stream, table, chunk_sums, limit,
         scales);
  check_launch("scales of clip_norms", {{"ranges", table.count}});
  launch(scale_kernel, chunks, kNormThreads, stream, table, scales, arrays.gradients, arrays.clipped);
  check_launch("clip_norms", {{"chunks", chunks}});
}

}  // namespace

void queue_clip_norms(std::span<const NormRange> ranges, float limit, const float* gradients, float* clipped,
                      float* workspace, cudaStream_t stream) {
  // All tables can use one workspace, because launches in a stream run one after another.
  while (!ranges.empty()) {
    const std::size_t count = std::min<std::size_t>(ranges.size(), NormTable::kMost);
    NormTable table{};
    unsigned chunks = 0;
    for (const NormRange& range : ranges.first(count)) {
      table.at[table.count++] = {range, chunks};
      chunks += static_cast<unsigned>(norm_chunks(range));
    }
    if (chunks > 0) queue_table(table, chunks, limit, {gradients, clipped, workspace}, stream);
    ranges = ranges.subspan(count);
  }
}

}  // namespace holdfast::compute
