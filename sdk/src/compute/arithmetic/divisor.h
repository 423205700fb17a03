#pragma once

// A divisor below 2^31 for many numbers below 2^31. Division is a product with its reciprocal, which takes a device a
// tenth of the time of a 64-bit division. For host and device.

#include <cstdint>

#include "core/host_device.h"
#include "holdfast/base/error.h"

namespace holdfast::compute {

class Divisor {
 public:
  static constexpr std::int64_t kLargest = 0x7FFFFFFF;

  explicit Divisor(std::int64_t value) : value_(static_cast<std::int32_t>(value)) {
    HOLDFAST_ASSERT(1 <= value && value <= kLargest);
    while (std::int64_t{1} << (shift_ - kBits) < value) ++shift_;
    // Rounding up changes no quotient of a 31-bit number (Granlund and Montgomery: "Division by Invariant Integers
    // using Multiplication", PLDI 1994).
    const auto divisor = static_cast<std::uint64_t>(value);
    multiplier_ = static_cast<std::uint32_t>(((std::uint64_t{1} << shift_) + divisor - 1) / divisor);
  }

  HOLDFAST_HOST_DEVICE static constexpr Divisor one() { return Divisor(); }

  HOLDFAST_HOST_DEVICE operator std::int32_t() const { return value_; }

  // The quotient of a number that is not negative.
  HOLDFAST_HOST_DEVICE std::int32_t quotient(std::int32_t number) const {
    const std::uint64_t product = static_cast<std::uint64_t>(static_cast<std::uint32_t>(number)) * multiplier_;
    return static_cast<std::int32_t>(product >> shift_);
  }

 private:
  static constexpr int kBits = 31;

  constexpr Divisor() = default;

  std::int32_t value_ = 1;
  std::uint32_t multiplier_ = std::uint32_t{1} << kBits;  // 2^shift / value
  int shift_ = kBits;
};

}  // namespace holdfast::compute
