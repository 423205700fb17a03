#pragma once

// The counter-based generator of Random, for host and device. Four draws are computed at a time, from a key and a
// counter alone, so draws can be made in any order and there is no generator state to save.

#include <cstdint>

#include "core/host_device.h"

namespace holdfast {

struct PhiloxBlock {
  std::uint32_t word[4];
};

struct PhiloxKey {
  std::uint32_t word[2];
};

// The upper half of the product.
HOLDFAST_HOST_DEVICE inline std::uint32_t philox_high(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(a) * b >> 32);
}

inline constexpr std::uint32_t kPhiloxRounds = 10;
inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;

HOLDFAST_HOST_DEVICE inline PhiloxKey philox_round_key(PhiloxKey key, std::uint32_t round) {
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  return {{key.word[0] + round * kWeyl0, key.word[1] + round * kWeyl1}};
}

// One of the ten rounds.
HOLDFAST_HOST_DEVICE inline PhiloxBlock philox_round(PhiloxBlock counter, PhiloxKey key, std::uint32_t round) {
  const PhiloxKey of_round = philox_round_key(key, round);
  return {{philox_high(kPhiloxMultiplier1, counter.word[2]) ^ counter.word[1] ^ of_round.word[0],
           kPhiloxMultiplier1 * counter.word[2],
           philox_high(kPhiloxMultiplier0, counter.word[0]) ^ counter.word[3] ^ of_round.word[1],
           kPhiloxMultiplier0 * counter.word[0]}};
}

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011). Without a loop,
// so that compilers make vector instructions of loops over counters.
HOLDFAST_HOST_DEVICE inline PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) {
  counter = philox_round(counter, key, 0);
  counter = philox_round(counter, key, 1);
  counter = philox_round(counter, key, 2);
  counter = philox_round(counter, key, 3);
  counter = philox_round(counter, key, 4);
  counter = philox_round(counter, key, 5);
  counter = philox_round(counter, key, 6);
  counter = philox_round(counter, key, 7);
  counter = philox_round(counter, key, 8);
  return philox_round(counter, key, 9);
}

// The draws of (seed, purpose, major, minor), see Random.
struct PhiloxSequence {
  PhiloxKey key;
  std::uint32_t high[2];  // the upper words of each block's counter
};

HOLDFAST_HOST_DEVICE inline PhiloxBlock philox_words(std::uint64_t low, std::uint64_t high) {
  return {{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
           static_cast<std::uint32_t>(high >> 32)}};
}

// The four words of a counter cannot hold purpose, major, minor and a position at once. So the key of the sequence is
// itself drawn: first with the seed as the key at the counter (purpose, major), then with that result as the key at the
// counter (minor, 0). Each draw is a bijection of the counter for its key. Two sequences therefore collide only with
// the probability that two random 64-bit keys are equal.
HOLDFAST_HOST_DEVICE inline PhiloxSequence philox_sequence(std::uint64_t seed, std::uint32_t purpose,
                                                           std::uint64_t major, std::uint64_t minor) {
  const PhiloxKey seed_key = {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  const PhiloxBlock first = philox(philox_words(purpose, major), seed_key);
  const PhiloxBlock second = philox(philox_words(minor, 0), {{first.word[0], first.word[1]}});
  return {{{second.word[0] ^ first.word[2], second.word[1] ^ first.word[3]}}, {second.word[2], second.word[3]}};
}

// Draws 4 * block to 4 * block + 3 of a sequence, in the order of Random::next_u32().
HOLDFAST_HOST_DEVICE inline PhiloxBlock philox_draws(const PhiloxSequence& sequence, std::uint64_t block) {
  const PhiloxBlock counter = {
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), sequence.high[0], sequence.high[1]}};
  return philox(counter, sequence.key);
}

// The float of a draw in Random::uniform(): a multiple of 2^-24 in [0, 1).
HOLDFAST_HOST_DEVICE inline float unit_float(std::uint32_t draw) {
  // Signed, because instruction sets before AVX-512 convert no unsigned numbers.
  return static_cast<float>(static_cast<std::int32_t>(draw >> 8)) * 0x1p-24F;
}

}  // namespace holdfast
