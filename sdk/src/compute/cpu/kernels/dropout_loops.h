#pragma once

// See vector_kernels.h. A draw decides as an integer, which is what its float says: unit_float(draw) < rate holds where
// draw / 2^8 is below rate * 2^24, and both products with powers of two are exact.

#include "compute/arithmetic/float_bits.h"
#include "compute/cpu/kernels/philox_lanes.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

// Which draws drop, and what the others multiply by.
struct DropoutLanes {
  SignedLanes least_kept;
  SignedLanes kept;
};

[[gnu::always_inline]] inline DropoutLanes dropout_lanes(float rate, float kept) {
  const float scaled = rate * 0x1p24F;
  const auto whole = static_cast<std::int32_t>(scaled);
  // The least whole number that is not below the rate.
  const std::int32_t least = static_cast<float>(whole) < scaled ? whole + 1 : whole;
  return {SignedLanes{} + least, SignedLanes{} + static_cast<std::int32_t>(bits_of(kept))};
}

// A dropped number is multiplied by 0, so that a NaN stays one.
[[gnu::always_inline]] inline void drop_vector(const DropoutLanes& lanes, DrawLanes draws, const float* input,
                                               float* output) {
  FloatLanes numbers;
  __builtin_memcpy(&numbers, input, sizeof(numbers));
  const auto is_dropped = reinterpret_cast<SignedLanes>(draws >> 8) < lanes.least_kept;
  const FloatLanes result = numbers * reinterpret_cast<FloatLanes>(lanes.kept & ~is_dropped);
  __builtin_memcpy(output, &result, sizeof(result));
}

void dropout(const PhiloxSequence& sequence, const float* input, std::int64_t count, float rate, float kept,
             float* output) {
  constexpr std::int64_t kStep = 2 * kDrawLanes;
  const PhiloxSequence same = sequence;
  const PhiloxKeyLanes keys = philox_key_lanes(same.key);
  const DropoutLanes lanes = dropout_lanes(rate, kept);
  std::int64_t first = 0;
  std::uint64_t counter = 0;
  for (; first + kStep <= count; first += kStep, counter += kCounterLanes) {
    const PhiloxDraws draws = philox_draw_lanes(same, keys, counter);
    drop_vector(lanes, draws.first, input + first, output + first);
    drop_vector(lanes, draws.second, input + first + kDrawLanes, output + first + kDrawLanes);
  }
  if (first == count) return;
  // The last numbers are worked on in a block of their own.
  float block[kStep] = {};
  for (std::int64_t i = first; i < count; ++i) block[i - first] = input[i];
  const PhiloxDraws draws = philox_draw_lanes(same, keys, counter);
  drop_vector(lanes, draws.first, block, block);
  drop_vector(lanes, draws.second, block + kDrawLanes, block + kDrawLanes);
  for (std::int64_t i = first; i < count; ++i) output[i] = block[i - first];
}

}  // namespace
}  // namespace holdfast::compute
