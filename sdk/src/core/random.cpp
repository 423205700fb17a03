// Draw i of a sequence is a function of its seed, its purpose and two numbers. So no file holds the state of a
// generator, and replicas that never talk to each other draw the same. The rounds are in philox.h, because kernels of
// devices draw with the same code.

#include "holdfast/core/random.h"

#include <cmath>
#include <numbers>

#include "core/philox.h"
#include "holdfast/base/error.h"

namespace holdfast {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  const PhiloxBlock block = philox({{counter[0], counter[1], counter[2], counter[3]}}, {{key[0], key[1]}});
  return std::to_array(block.word);
}

Random::Random(std::uint64_t seed, Purpose purpose, std::uint64_t major, std::uint64_t minor) {
  const PhiloxSequence sequence = philox_sequence(seed, static_cast<std::uint32_t>(purpose), major, minor);
  key_ = std::to_array(sequence.key.word);
  counter_ = {0, 0, sequence.high[0], sequence.high[1]};
}

std::uint32_t Random::next_u32() {
  if (used_ == 4) {
    block_ = philox4x32(counter_, key_);
    used_ = 0;
    // The lower two words number the blocks of a sequence; the upper two belong to the sequence.
    if (++counter_[0] == 0) ++counter_[1];
  }
  return block_[static_cast<std::size_t>(used_++)];
}

std::uint64_t Random::next_u64() {
  // Two statements: an expression with two draws may evaluate them in either order, and compilers differ.
  const std::uint64_t low = next_u32();
  return low | static_cast<std::uint64_t>(next_u32()) << 32;
}

float Random::uniform() {
  return unit_float(next_u32());
}

float Random::normal() {
  // The Box-Muller transform. 1 - u lies in (0, 1], so the logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - static_cast<double>(next_u32()) * 0x1p-32));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(next_u32()) * 0x1p-32;
  // The transform's second number, with the sine, is dropped: every normal() takes two draws, and
  // there is nothing to keep between calls.
  return static_cast<float>(radius * std::cos(angle));
}

std::uint64_t Random::below(std::uint64_t bound) {
  __extension__ using Product = unsigned __int128;
  HOLDFAST_ASSERT(bound > 0);
  // Lemire's method ("Fast Random Integer Generation in an Interval", 2019): products below the threshold, which is
  // 2^64 mod bound, are rejected, so that all results are equally likely.
  const std::uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const Product product = static_cast<Product>(next_u64()) * bound;
    if (static_cast<std::uint64_t>(product) >= threshold) return static_cast<std::uint64_t>(product >> 64);
  }
}

}  // namespace holdfast
