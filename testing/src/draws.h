#pragma once

// Numbers that a seed gives on every host.

#include <cstdint>

namespace holdfast::resilience {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}

  // SplitMix64.
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
  }
  // Less than `count`, which is far smaller than 2^64: the remainder's preference for small numbers is not seen.
  std::uint64_t below(std::uint64_t count) { return next() % count; }

 private:
  std::uint64_t state_;
};

}  // namespace holdfast::resilience
