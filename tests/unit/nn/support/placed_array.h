#pragma once

// An array in the memory of a back end, so that one test compares what the host and what a device computes.

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "holdfast/core/memory_space.h"

namespace holdfast {

// Words of four bytes: floats, or 32-bit integers.
class PlacedArray {
 public:
  // Zeros.
  PlacedArray(MemorySpace& memory, std::size_t words) : memory_(&memory), words_(words) {
    if (words > 0) placed_ = memory.allocate(words);
  }
  PlacedArray(MemorySpace& memory, std::span<const float> values) : PlacedArray(memory, values.size()) {
    memory.copy_from_host(values, span());
  }
  PlacedArray(MemorySpace& memory, std::span<const std::byte> bytes) : PlacedArray(memory, floats_of(bytes)) {}

  float* data() const { return placed_.get(); }
  std::span<float> span() const { return {placed_.get(), words_}; }
  std::vector<float> values() const {
    std::vector<float> values(words_);
    memory_->copy_to_host(span(), values);
    return values;
  }

 private:
  static std::vector<float> floats_of(std::span<const std::byte> bytes) {
    std::vector<float> floats(bytes.size() / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    return floats;
  }

  MemorySpace* memory_;
  std::size_t words_;
  std::shared_ptr<float[]> placed_;
};

}  // namespace holdfast
