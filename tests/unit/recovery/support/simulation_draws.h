#pragma once

// What is drawn for simulated runs.

#include <cstdint>

namespace holdfast::recovery {

// The same on every machine, unlike the distributions of the standard library.
class SimulationDraws {
 public:
  explicit SimulationDraws(std::uint64_t seed) : state_(seed) {}

  // SplitMix64, by Steele, Lea and Flood in "Fast splittable pseudorandom number generators" (2014).
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t word = state_;
    word = (word ^ (word >> 30U)) * 0xBF58476D1CE4E5B9U;
    word = (word ^ (word >> 27U)) * 0x94D049BB133111EBU;
    return word ^ (word >> 31U);
  }
  int below(int end) { return static_cast<int>(next() % static_cast<std::uint64_t>(end)); }
  int between(int first, int last) { return first + below(last - first + 1); }
  bool chance(int percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace holdfast::recovery
