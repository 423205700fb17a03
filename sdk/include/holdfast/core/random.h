#pragma once

// Random numbers as a function: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As
// Easy as 1, 2, 3", SC 2011). A draw depends only on the seed, its purpose, two counters and its
// position in the sequence. There is no generator whose state must be saved, and any replica can make
// any draw.
//
//   Random random(seed, Purpose::user, epoch, sample);
//   const float noise = random.normal();

#include <array>
#include <cstdint>

namespace holdfast {

// One block of the generator: four words for a counter and a key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// Keeps draws for different ends apart. The bits of a run depend on the values: never change or reuse
// one.
enum class Purpose : std::uint32_t {
  initial_weights = 1,  // of layers
  shuffle = 2,          // the order of samples
  dropout = 3,          // which elements are dropped
  augmentation = 4,     // what map() functions draw
  synthetic_data = 5,   // samples that examples and tests make
  user = 6,             // for applications
  gradient_check = 7,   // the elements that a check of gradients looks at
  split = 8,            // which samples are for validation
  generator = 9         // seeds of another engine's generator
};

// The sequence of draws for (seed, purpose, major, minor). By convention `major` is the step, the epoch
// or the entry, and `minor` the global number or position of the sample. A sequence has at most 2^34
// draws. This is a value: a copy continues from the same position.
class Random {
 public:
  // The sequence of these numbers, from its first draw.
  Random(std::uint64_t seed, Purpose purpose, std::uint64_t major, std::uint64_t minor);

  // Uniform over all values of the type.
  std::uint32_t next_u32();
  std::uint64_t next_u64();  // two draws of next_u32()
  // Uniform in [0, 1): multiples of 2^-24.
  float uniform();
  // Standard normal (Box and Muller, 1958), computed in double.
  float normal();
  // Uniform in [0, bound), without bias (Lemire, "Fast Random Integer Generation in an Interval",
  // 2019). Asserts bound > 0.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;  // words of block_ that were handed out
};

}  // namespace holdfast
