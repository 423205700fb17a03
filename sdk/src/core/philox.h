#pragma once

// The generator behind Random, for host and device: a sequence of draws, four at a time, in any order.

#include <cstdint>

#include "core/host_device.h"

namespace holdfast {

struct PhiloxBlock {
  std::uint32_t word[4];
};

struct PhiloxKey {
  std::uint32_t word[2];
};

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
HOLDFAST_HOST_DEVICE inline PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter.word[0];
    const std::uint64_t product1 = kMultiplier1 * counter.word[2];
    counter = {{static_cast<std::uint32_t>(product1 >> 32) ^ counter.word[1] ^ key.word[0],
                static_cast<std::uint32_t>(product1),
                static_cast<std::uint32_t>(product0 >> 32) ^ counter.word[3] ^ key.word[1],
                static_cast<std::uint32_t>(product0)}};
    key.word[0] += kWeyl0;
    key.word[1] += kWeyl1;
  }
  return counter;
}

// Which draws belong to (seed, purpose, major, minor): see Random.
struct PhiloxSequence {
  PhiloxKey key;
  std::uint32_t high[2];  // of the counter of each block
};

HOLDFAST_HOST_DEVICE inline PhiloxBlock philox_words(std::uint64_t low, std::uint64_t high) {
  return {{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
           static_cast<std::uint32_t>(high >> 32)}};
}

// The four counter words cannot hold purpose, major, minor and a position at once. So the key of the sequence is itself
// a draw: of the generator keyed by the seed, at the counter (major, purpose and minor folded in by a second draw).
// Each step is a bijection of the counter for its key, so that sequences meet only with the probability of two random
// 64-bit keys being equal.
HOLDFAST_HOST_DEVICE inline PhiloxSequence philox_sequence(std::uint64_t seed, std::uint32_t purpose,
                                                           std::uint64_t major, std::uint64_t minor) {
  const PhiloxKey seed_key = {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  const PhiloxBlock first = philox(philox_words(purpose, major), seed_key);
  const PhiloxBlock second = philox(philox_words(minor, 0), {{first.word[0], first.word[1]}});
  return {{{second.word[0] ^ first.word[2], second.word[1] ^ first.word[3]}}, {second.word[2], second.word[3]}};
}

// Draws 4 `block` to 4 `block` + 3 of a sequence, as Random::next_u32() hands them out.
HOLDFAST_HOST_DEVICE inline PhiloxBlock philox_draws(const PhiloxSequence& sequence, std::uint64_t block) {
  const PhiloxBlock counter = {
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), sequence.high[0], sequence.high[1]}};
  return philox(counter, sequence.key);
}

// In [0, 1), multiples of 2^-24: Random::uniform() of a draw.
HOLDFAST_HOST_DEVICE inline float unit_float(std::uint32_t draw) {
  return static_cast<float>(draw >> 8) * 0x1p-24F;
}

}  // namespace holdfast
