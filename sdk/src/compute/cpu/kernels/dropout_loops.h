#pragma once

// See vector_kernels.h. A draw decides as an integer, which is what its float says: unit_float(draw) < rate holds where
// draw / 2^8 is below rate * 2^24, and both products with powers of two are exact.

#include "compute/arithmetic/float_bits.h"
#include "compute/cpu/kernels/loop_hints.h"
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

// Drops of kBlocks times 2 * kDrawLanes numbers.
template <bool kAreWords, int kBlocks>
[[gnu::always_inline]] inline void drop_blocks(const PhiloxSequence& sequence, const PhiloxKeyLanes& keys,
                                               const DropoutLanes& lanes, std::uint64_t counter, const float* input,
                                               float* output) {
  PhiloxDraws draws[kBlocks];
  philox_draw_lanes<kAreWords>(sequence, keys, counter, draws);
#pragma GCC unroll 4
  for (int block = 0; block < kBlocks; ++block) {
    const std::int64_t first = 2 * block * kDrawLanes;
    for (std::int64_t i = first; i < first + 2 * kDrawLanes; i += kLineFloats) {
      ask_ahead(input + i);
      ask_ahead(output + i);
    }
    drop_vector(lanes, draws[block].first, input + first, output + first);
    drop_vector(lanes, draws[block].second, input + first + kDrawLanes, output + first + kDrawLanes);
  }
}

void dropout(const PhiloxSequence& sequence, const float* input, std::int64_t count, float rate, float kept,
             float* output) {
  constexpr std::int64_t kStep = 2 * kDrawLanes;
  constexpr int kBlocks = kVectorBytes == 64 ? 4 : 1;  // AVX-512 has the registers
  const PhiloxSequence same = sequence;
  const PhiloxKeyLanes keys = philox_key_lanes(same.key);
  const DropoutLanes lanes = dropout_lanes(rate, kept);
  std::int64_t first = 0;
  std::uint64_t counter = 0;
  const auto drop_while_counters_are_below = [&]<bool kAreWords>(std::uint64_t end) HOLDFAST_INLINED {
    for (; first + kBlocks * kStep <= count && counter < end; first += kBlocks * kStep) {
      drop_blocks<kAreWords, kBlocks>(same, keys, lanes, counter, input + first, output + first);
      counter += kBlocks * kCounterLanes;
    }
  };
  drop_while_counters_are_below.template operator()<true>(std::uint64_t{1} << 32);
  drop_while_counters_are_below.template operator()<false>(~std::uint64_t{0});
  // The last numbers are worked on in blocks of their own.
  for (; first < count; first += kStep, counter += kCounterLanes) {
    const std::int64_t rest = count - first < kStep ? count - first : kStep;
    float block[kStep] = {};
    for (std::int64_t i = 0; i < rest; ++i) block[i] = input[first + i];
    drop_blocks<false, 1>(same, keys, lanes, counter, block, block);
    for (std::int64_t i = 0; i < rest; ++i) output[first + i] = block[i];
  }
}

}  // namespace
}  // namespace holdfast::compute
