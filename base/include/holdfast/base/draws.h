#pragma once

// Numbers that are a function of a seed alone, the same on every host and with every library: the digest of seed and
// position. For choosing faults, not for arithmetic that must be fast or even.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "holdfast/base/digest.h"

namespace holdfast {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t next() {
    const std::array<std::uint64_t, 2> key{seed_, position_++};
    const Digest hash = digest(std::as_bytes(std::span(key)));
    std::uint64_t value = 0;
    std::memcpy(&value, hash.bytes.data(), sizeof value);
    return value;
  }

  // From 0 to `end` - 1. Low numbers are likelier by end / 2^64, which no choice of a fault shows.
  std::uint64_t below(std::uint64_t end) { return next() % end; }

 private:
  std::uint64_t seed_;
  std::uint64_t position_ = 0;
};

}  // namespace holdfast
