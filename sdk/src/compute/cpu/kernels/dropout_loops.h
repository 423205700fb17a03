#pragma once

// See vector_kernels.h. Draws are made for a block of counters at a time and then laid out in their order, which is
// that of the elements.

#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

void dropout(const PhiloxSequence& sequence, const float* input, std::int64_t count, float rate, float kept,
             float* output) {
  constexpr std::int32_t kCounters = 64;
  constexpr std::int32_t kWords = 4;
  const PhiloxSequence same = sequence;
  alignas(64) std::uint32_t words[kWords][kCounters];
  alignas(64) std::uint32_t draws[kCounters * kWords];
  for (std::int64_t first = 0; first < count; first += kCounters * kWords) {
    // The lower word of the counter does not overflow within a block.
    const auto counter = static_cast<std::uint64_t>(first / kWords);
    const auto low = static_cast<std::uint32_t>(counter);
    const auto high = static_cast<std::uint32_t>(counter >> 32);
#pragma omp simd
    for (std::int32_t i = 0; i < kCounters; ++i) {
      const PhiloxBlock block =
          philox({{low + static_cast<std::uint32_t>(i), high, same.high[0], same.high[1]}}, same.key);
      words[0][i] = block.word[0];
      words[1][i] = block.word[1];
      words[2][i] = block.word[2];
      words[3][i] = block.word[3];
    }
#pragma omp simd
    for (std::int32_t i = 0; i < kCounters; ++i) {
      draws[kWords * i] = words[0][i];
      draws[kWords * i + 1] = words[1][i];
      draws[kWords * i + 2] = words[2][i];
      draws[kWords * i + 3] = words[3][i];
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
