#pragma once

// See vector_kernels.h. Draws are made for a block of counters at a time and then laid out in their order, which is
// that of the elements.

#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

void dropout(const PhiloxSequence& sequence, const float* input, std::int64_t count, float rate, float kept,
             float* output) {
  constexpr std::int64_t kCounters = 64;
  constexpr std::int64_t kWords = 4;
  const PhiloxSequence same = sequence;
  alignas(64) std::uint32_t draws[kCounters * kWords];
  for (std::int64_t first = 0; first < count; first += kCounters * kWords) {
#pragma omp simd
    for (std::int64_t i = 0; i < kCounters; ++i) {
      const PhiloxBlock block = philox_draws(same, static_cast<std::uint64_t>(first / kWords + i));
      draws[kWords * i] = block.word[0];
      draws[kWords * i + 1] = block.word[1];
      draws[kWords * i + 2] = block.word[2];
      draws[kWords * i + 3] = block.word[3];
    }
    const std::int64_t width = count - first < kCounters * kWords ? count - first : kCounters * kWords;
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      output[first + i] = input[first + i] * (unit_float(draws[i]) < rate ? 0.0F : kept);
    }
  }
}

}  // namespace
}  // namespace holdfast::compute
