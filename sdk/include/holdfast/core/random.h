#pragma once

// Randomness as a function: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC 2011). A draw depends on nothing but (seed, purpose, two counters, position in the sequence), so there is no
// generator state to save, and it does not matter which replica makes the draw.

#include <array>
#include <cstdint>

namespace holdfast {

// One block of the generator.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// Keeps draws for different ends apart. Values are part of what a run's bits depend on: they are never changed or used
// again.
enum class Purpose : std::uint32_t {
  initial_weights = 1,
  shuffle = 2,
  dropout = 3,
  augmentation = 4,
  synthetic_data = 5,
  user = 6,
  gradient_check = 7,
  split = 8
};

// The sequence of draws that belongs to (seed, purpose, major, minor). By convention `major` is the step, epoch or
// entry and `minor` the global sample index or position. A value: copying it copies the position in the sequence. At
// most 2^34 draws.
class Random {
 public:
  Random(std::uint64_t seed, Purpose purpose, std::uint64_t major, std::uint64_t minor);

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  // In [0, 1), multiples of 2^-24.
  float uniform();
  // Standard normal by Box and Muller (1958), computed in double.
  float normal();
  // Evenly from [0, bound) without bias (Lemire, "Fast Random Integer Generation in an Interval", 2019). Asserts bound
  // > 0.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;  // words of block_ that were handed out
};

}  // namespace holdfast
