// The softmax of an attention on CUDA devices: as that of activations, a warp or a block for each query, over the keys
// that causality and window leave. A thread reads and writes its own elements alone, so results may lie where scores
// were. docs/decisions/device-arithmetic.md

#include <cmath>

#include "compute/arithmetic/softmax.h"
#include "compute/cuda/kernels/cuda_array_kernels.h"
#include "compute/cuda/kernels/cuda_sums.cuh"
#include "compute/cuda/runtime/cuda_elements.cuh"

namespace holdfast::compute {
namespace {

// A block has one row, or one for each of its warps. So the threads of a row leave a kernel together.
template <class Group>
__device__ std::int64_t row_of_scores() {
  return std::int64_t{blockIdx.x} * (kSumThreads / Group::kThreads) + threadIdx.x / Group::kThreads;
}

// Zeros for the keys that are left out.
template <class Group>
__device__ void clear_others(const AttentionScores& scores, std::int64_t row, float* to) {
  const std::int64_t first = scores.first(row);
  const std::int64_t end = scores.end(row);
  for (std::int64_t key = Group::rank(); key < scores.keys; key += Group::kThreads) {
    if (key < first || key >= end) to[key] = 0;
  }
}

template <class Group>
__global__ void __launch_bounds__(kSumThreads)
    attention_shares_kernel(const __grid_constant__ AttentionScores scores, const float* from, const float* mask,
                            float* shares) {
  const std::int64_t row = row_of_scores<Group>();
  if (row >= scores.rows()) return;
  clear_others<Group>(scores, row, shares + row * scores.keys);  // first: its numbers would take registers to the end
  const std::int64_t first = scores.first(row);
  const std::int64_t count = scores.end(row) - first;
  const float* const given = from + row * scores.keys + first;
  const float* const mask_of_row = mask == nullptr ? nullptr : mask + scores.mask(row) + first;
  float* const to = shares + row * scores.keys + first;
  const auto load = [&](std::int64_t i) {
    // The exponential of minus infinity is 0, also in a row of masked keys alone (softmax_shift()).
    const bool is_masked = mask_of_row != nullptr && mask_of_row[i] == 0;
    return is_masked ? -INFINITY : given[i] * scores.scale;
  };
  float largest = -INFINITY;
  for_each_of_row(Group{}, count, load, [&](std::int64_t, float value) { largest = fmaxf(largest, value); });
  const float shift = softmax_shift(Group::largest(largest));
  float sum = 0;
  for_each_of_row(Group{}, count, load, [&](std::int64_t, float value) { sum += softmax_exponential(value, shift); });
  const float divisor = softmax_divisor(Group::sum(sum));
  for_each_of_row(Group{}, count, load,
                  [&](std::int64_t i, float value) { to[i] = softmax_exponential(value, shift) / divisor; });
}

struct ShareAndGradient {
  float share;
  float gradient;
};

// scores_gradient = scale * share * (shares_gradient - sum of share * shares_gradient)
template <class Group>
__global__ void __launch_bounds__(kSumThreads)
    attention_shares_backward_kernel(const __grid_constant__ AttentionScores scores, const float* shares,
                                     const float* shares_gradient, float* scores_gradient) {
  const std::int64_t row = row_of_scores<Group>();
  if (row >= scores.rows()) return;
  const std::int64_t first = scores.first(row);
  const std::int64_t count = scores.end(row) - first;
  const std::int64_t begin = row * scores.keys + first;
  const auto load = [&](std::int64_t i) { return ShareAndGradient{shares[begin + i], shares_gradient[begin + i]}; };
  float sum = 0;
  for_each_of_row(Group{}, count, load,
                  [&](std::int64_t, const ShareAndGradient& at) { sum += at.share * at.gradient; });
  sum = Group::sum(sum);
  for_each_of_row(Group{}, count, load, [&](std::int64_t i, const ShareAndGradient& at) {
    scores_gradient[begin + i] = at.share * (at.gradient - sum) * scores.scale;
  });
  // A key that is left out has no share, and so its score has no gradient.
  clear_others<Group>(scores, row, scores_gradient + row * scores.keys);
}

// Only the shape decides, since the choice is a part of the order of the sum.
bool is_row_of_warp(const AttentionScores& scores) {
  return scores.keys <= kWarpRow;
}

unsigned blocks_of(const AttentionScores& scores) {
  return block_count(scores.rows(), is_row_of_warp(scores) ? kSumThreads / kWarp : 1);
}

}  // namespace

void CudaArrayKernels::attention_shares(const AttentionScores& scores, const float* from, const float* mask,
                                        float* shares) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  // CUDA refuses a launch of no blocks.
  if (scores.rows() * scores.keys == 0) return;
  const auto kernel = is_row_of_warp(scores) ? attention_shares_kernel<WarpOfRow> : attention_shares_kernel<BlockOfRow>;
  launch(kernel, blocks_of(scores), kSumThreads, context_.stream(), scores, from, mask, shares);
  check_launch("attention shares", {{"rows", scores.rows()}, {"keys", scores.keys}});
}

void CudaArrayKernels::attention_shares_backward(const AttentionScores& scores, const float* shares,
                                                 const float* shares_gradient, float* scores_gradient) {
  const CudaContext::StreamLock lock = context_.lock_stream();
  if (scores.rows() * scores.keys == 0) return;
  const auto kernel = is_row_of_warp(scores) ? attention_shares_backward_kernel<WarpOfRow>
                                             : attention_shares_backward_kernel<BlockOfRow>;
  launch(kernel, blocks_of(scores), kSumThreads, context_.stream(), scores, shares, shares_gradient, scores_gradient);
  check_launch("gradient of attention shares", {{"rows", scores.rows()}, {"keys", scores.keys}});
}

}  // namespace holdfast::compute
