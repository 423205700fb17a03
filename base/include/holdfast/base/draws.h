#pragma once

// Random-looking numbers that are a function of a seed alone, the same on every host and with every
// library. Number i is the first 8 bytes of digest(seed, i). They serve to choose faults in tests.
// They are too slow for arithmetic, and below() is slightly uneven: training draws from Philox
// (holdfast/core/random.h).
//
//   Draws draws(seed);
//   const std::uint64_t step = draws.below(100);  // the same step in every run with this seed

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "holdfast/base/digest.h"

namespace holdfast {

// Not for several threads at once. A copy goes on from the same position.
class Draws {
 public:
  // Two objects with the same seed give the same numbers.
  explicit Draws(std::uint64_t seed) : seed_(seed) {}

  // The next number, from 0 to 2^64 - 1.
  std::uint64_t next() {
    const std::array<std::uint64_t, 2> key{seed_, position_++};
    const Digest hash = digest(std::as_bytes(std::span(key)));
    std::uint64_t value = 0;
    std::memcpy(&value, hash.bytes.data(), sizeof value);
    return value;
  }

  // From 0 to `end` - 1; `end` is not 0. Low numbers are likelier by end / 2^64, too little to matter
  // for the choice of a fault.
  std::uint64_t below(std::uint64_t end) { return next() % end; }

 private:
  std::uint64_t seed_;
  std::uint64_t position_ = 0;  // of the next number
};

}  // namespace holdfast
