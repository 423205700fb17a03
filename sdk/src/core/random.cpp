#include "holdfast/core/random.h"

#include <cmath>
#include <numbers>

#include "holdfast/base/error.h"

namespace holdfast {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

static std::array<std::uint32_t, 4> words(std::uint64_t low, std::uint64_t high) {
  return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
          static_cast<std::uint32_t>(high >> 32)};
}

// The four counter words cannot hold purpose, major, minor and a position at once. So the key of the sequence is itself
// a draw: of the generator keyed by the seed, at the counter (major, purpose and minor folded in by a second draw).
// Each step is a bijection of the counter for its key, so that sequences meet only with the probability of two random
// 64-bit keys being equal.
Random::Random(std::uint64_t seed, Purpose purpose, std::uint64_t major, std::uint64_t minor)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}, counter_{0, 0, 0, 0} {
  const auto first = philox4x32(words(static_cast<std::uint64_t>(purpose), major), key_);
  const auto second = philox4x32(words(minor, 0), {first[0], first[1]});
  key_ = {second[0] ^ first[2], second[1] ^ first[3]};
  counter_[2] = second[2];
  counter_[3] = second[3];
}

std::uint32_t Random::next_u32() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    used_ = 0;
    if (++counter_[0] == 0) ++counter_[1];
  }
  return block_[static_cast<std::size_t>(used_++)];
}

std::uint64_t Random::next_u64() {
  const std::uint64_t low = next_u32();
  return low | static_cast<std::uint64_t>(next_u32()) << 32;
}

float Random::uniform() {
  return static_cast<float>(next_u32() >> 8) * 0x1p-24F;
}

float Random::normal() {
  // 1 - u lies in (0, 1], so that the logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(next_u32()) * 0x1p-32));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(next_u32()) * 0x1p-32;
  return static_cast<float>(radius * std::cos(angle));
}

std::uint64_t Random::below(std::uint64_t bound) {
  __extension__ using Product = unsigned __int128;
  HOLDFAST_ASSERT(bound > 0);
  const std::uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const Product product = static_cast<Product>(next_u64()) * bound;
    if (static_cast<std::uint64_t>(product) >= threshold) return static_cast<std::uint64_t>(product >> 64);
  }
}

}  // namespace holdfast
