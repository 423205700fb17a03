#include <cmath>

#include "compute/cuda/cuda_arrays.h"
#include "compute/cuda/cuda_elements.cuh"

namespace holdfast::compute {
namespace {

struct AddPass {
  const float* summand;
  float* sum;

  template <int kCount>
  __device__ void run(std::size_t index) const {
    const FloatVector<kCount> added = load<kCount>(summand, index);
    FloatVector<kCount> result = load<kCount>(sum, index);
    for (int i = 0; i < kCount; ++i) result.at[i] += added.at[i];
    store(sum, index, result);
  }
};

struct GatherPass {
  const float* from;
  std::size_t row_floats;
  const std::int64_t* rows;
  float* to;

  // Vectors do not reach beyond their row: rows are so many of them then.
  template <int kCount>
  __device__ void run(std::size_t index) const {
    const std::size_t row = index / row_floats;
    const std::size_t place = static_cast<std::size_t>(rows[row]) * row_floats + (index - row * row_floats);
    store(to, index, load<kCount>(from, place));
  }
};

struct NotFinitePass {
  const float* values;
  std::uint32_t* flag;

  // Several threads may store the flag: all store the same.
  template <int kCount>
  __device__ void run(std::size_t index) const {
    const FloatVector<kCount> value = load<kCount>(values, index);
    bool are_finite = true;
    for (int i = 0; i < kCount; ++i) are_finite = are_finite && isfinite(value.at[i]);
    if (!are_finite) *flag = 1;
  }
};

}  // namespace

void add_arrays(const float* summand, float* sum, std::size_t floats, cudaStream_t stream) {
  run_pass("add", AddPass{summand, sum}, floats, {summand, sum}, stream);
}

void gather_rows(const float* from, std::size_t row_floats, const std::int64_t* rows, std::size_t row_count, float* to,
                 cudaStream_t stream) {
  const bool in_vectors = row_floats % kVectorFloats == 0 && is_aligned_for_vectors({from, to});
  run_pass("gather_rows", GatherPass{from, row_floats, rows, to}, row_count * row_floats, in_vectors, stream);
}

void flag_not_finite(const float* values, std::size_t floats, std::uint32_t* flag, cudaStream_t stream) {
  run_pass("flag_not_finite", NotFinitePass{values, flag}, floats, {values}, stream);
}

}  // namespace holdfast::compute
