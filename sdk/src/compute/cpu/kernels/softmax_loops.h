#pragma once

// See vector_kernels.h. A row is worked on in blocks that stay in the first-level cache. The last one is filled up with
// minus infinities, which add nothing, so that short rows are computed in whole vectors, too.

#include "compute/arithmetic/lanes.h"
#include "compute/arithmetic/softmax.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

constexpr std::int64_t kRowBlock = 16 * kLanes;

// Copies up to kRowBlock scores and fills the last vector up. Returns how many places are filled.
[[gnu::always_inline]] inline std::int64_t fill_block(const float* scores, std::int64_t count, float* block) {
  for (std::int64_t i = 0; i < count; ++i) block[i] = scores[i];
  const std::int64_t filled = (count + kLanes - 1) / kLanes * kLanes;
  for (std::int64_t i = count; i < filled; ++i) block[i] = -kInfiniteFloat;
  return filled;
}

SoftmaxSums softmax_row(const float* row, std::int64_t count, float* exponentials) {
  const float shift = softmax_shift(largest_of_row(count, [=](std::int64_t c) { return row[c]; }));
  // The order is that of lanes.h.
  double lanes[kLanes] = {};
  alignas(64) float block[kRowBlock];
  for (std::int64_t first = 0; first < count; first += kRowBlock) {
    const std::int64_t width = count - first < kRowBlock ? count - first : kRowBlock;
    const std::int64_t filled = fill_block(row + first, width, block);
    for (std::int64_t i = 0; i < filled; i += kLanes) {
#pragma omp simd
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        block[i + lane] = softmax_exponential(block[i + lane], shift);
        lanes[lane] += block[i + lane];
      }
    }
    if (exponentials == nullptr) continue;
    for (std::int64_t i = 0; i < width; ++i) exponentials[first + i] = block[i];
  }
  return {shift, sum_of_row(kLanes, [&](std::int64_t lane) { return lanes[lane]; })};
}

void softmax(const float* input, std::int64_t rows, std::int64_t channels, float* output) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const result = output + row * channels;
    const float divisor = softmax_divisor(softmax_row(input + row * channels, channels, result).sum);
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) result[c] = result[c] / divisor;
  }
}

void softmax_backward(const float* output, const float* output_gradient, std::int64_t rows, std::int64_t channels,
                      float* input_gradient) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* const y = output + row * channels;
    const float* const dy = output_gradient + row * channels;
    float* const dx = input_gradient + row * channels;
    const auto sum = static_cast<float>(sum_of_row(channels, [=](std::int64_t c) { return y[c] * dy[c]; }));
#pragma omp simd
    for (std::int64_t c = 0; c < channels; ++c) dx[c] = y[c] * (dy[c] - sum);
  }
}

}  // namespace
}  // namespace holdfast::compute
