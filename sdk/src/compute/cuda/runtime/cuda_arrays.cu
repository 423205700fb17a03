// Passes over arrays in which each element is computed by itself, and a gather that reads the host's memory. A kernel
// that reads through the link waits nearly all the time. With as many blocks as usual it would keep all multiprocessors
// from training's stream, so it has eight. See docs/decisions/device-copies.md.

#include <algorithm>
#include <cmath>

#include "compute/cuda/runtime/cuda_arrays.h"
#include "compute/cuda/runtime/cuda_elements.cuh"

namespace holdfast::compute {
namespace {

struct AddPass {
  const float* summand;
  float* sum;

  template <int kCount>
  __device__ void run(std::size_t index) const {
    const FloatVector<kCount> added = load<kCount>(summand, index);
    FloatVector<kCount> result = load<kCount>(sum, index);
    // Each sum has two summands, so the order of threads cannot change a bit.
    for (int i = 0; i < kCount; ++i) result.at[i] += added.at[i];
    store(sum, index, result);
  }
};

struct GatherPass {
  const float* from;
  std::size_t row_floats;
  const std::int64_t* rows;
  float* to;

  // A vector never reaches beyond its row: vectors are used only if a row is a whole number of them.
  __device__ const float* source(std::size_t index) const {
    const std::size_t row = index / row_floats;
    return from + static_cast<std::size_t>(rows[row]) * row_floats + (index - row * row_floats);
  }

  template <int kCount>
  __device__ void run(std::size_t index) const {
    store(to, index, load<kCount>(source(index), 0));
  }
};

// So few threads keep the link busy, because each has several loads under way: half a megabyte together, in vectors.
constexpr int kLinkThreads = 1024;
constexpr unsigned kLinkBlocks = 8;
constexpr int kLinkLoads = 4;

template <int kCount>
__global__ void __launch_bounds__(kLinkThreads) gather_through_link_kernel(GatherPass pass, std::size_t vectors) {
  const std::size_t threads = static_cast<std::size_t>(gridDim.x) * kLinkThreads;
  std::size_t first = static_cast<std::size_t>(blockIdx.x) * kLinkThreads + threadIdx.x;
  // There are fewer threads than vectors, so each goes on to further ones.
  for (; first < vectors; first += kLinkLoads * threads) {
    // All addresses come first and then all loads, so that the loads overlap. Between divisions they would not.
    const float* sources[kLinkLoads] = {};
    FloatVector<kCount> values[kLinkLoads] = {};
#pragma unroll
    for (int i = 0; i < kLinkLoads; ++i) {
      const std::size_t vector = first + i * threads;
      if (vector < vectors) sources[i] = pass.source(vector * kCount);
    }
#pragma unroll
    for (int i = 0; i < kLinkLoads; ++i) {
      if (sources[i] != nullptr) values[i] = load<kCount>(sources[i], 0);
    }
#pragma unroll
    for (int i = 0; i < kLinkLoads; ++i) {
      if (sources[i] != nullptr) store(pass.to, (first + i * threads) * kCount, values[i]);
    }
  }
}

template <int kCount>
void gather_through_link(const GatherPass& pass, std::size_t floats, cudaStream_t stream) {
  const auto vectors = static_cast<std::int64_t>(floats / kCount);
  // A small batch needs fewer blocks than the limit.
  const unsigned blocks = std::min(block_count(vectors, kLinkThreads), kLinkBlocks);
  launch(gather_through_link_kernel<kCount>, blocks, kLinkThreads, stream, pass, floats / kCount);
  check_launch("gather_host_rows", {{"floats", static_cast<std::int64_t>(floats)}});
}

bool can_gather_in_vectors(const GatherPass& pass) {
  return pass.row_floats % kVectorFloats == 0 && is_aligned_for_vectors({pass.from, pass.to});
}

struct NotFinitePass {
  const float* values;
  std::uint32_t* flag;

  // Several threads may store the flag. All store the same value, directly into the cache that all multiprocessors
  // share.
  template <int kCount>
  __device__ void run(std::size_t index) const {
    const FloatVector<kCount> value = load<kCount>(values, index);
    bool are_finite = true;
    for (int i = 0; i < kCount; ++i) are_finite = are_finite && isfinite(value.at[i]);
    if (!are_finite) __stcg(flag, 1U);
  }
};

}  // namespace

void add_arrays(const float* summand, float* sum, std::size_t floats, cudaStream_t stream) {
  run_pass("add", AddPass{summand, sum}, floats, {summand, sum}, stream);
}

void gather_rows(const float* from, std::size_t row_floats, const std::int64_t* rows, std::size_t row_count, float* to,
                 cudaStream_t stream) {
  const GatherPass pass{from, row_floats, rows, to};
  run_pass("gather_rows", pass, row_count * row_floats, can_gather_in_vectors(pass), stream);
}

void gather_host_rows(const float* from, std::size_t row_floats, const std::int64_t* rows, std::size_t row_count,
                      float* to, cudaStream_t stream) {
  const std::size_t floats = row_count * row_floats;
  if (floats == 0) return;
  const GatherPass pass{from, row_floats, rows, to};
  if (can_gather_in_vectors(pass)) return gather_through_link<kVectorFloats>(pass, floats, stream);
  gather_through_link<1>(pass, floats, stream);
}

void flag_not_finite(const float* values, std::size_t floats, std::uint32_t* flag, cudaStream_t stream) {
  run_pass("flag_not_finite", NotFinitePass{values, flag}, floats, {values}, stream);
}

}  // namespace holdfast::compute
