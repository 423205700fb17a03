#pragma once

// Room in the host's memory for batches that are loaded ahead and travel to a device from there: rows of one array, as
// many for each batch as the largest has samples.

#include <cstddef>
#include <cstdint>
#include <span>

#include "holdfast/base/shared_memory.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// Arrays of the host with one row a sample, and all the memory that they lie in.
struct HostRows {
  std::span<const float> features;
  std::span<const float> targets;
  std::span<std::byte> memory;
};

class StagedBatches {
 public:
  // For `batches` of them, of at most `samples` each; at least one of either.
  StagedBatches(const Dataset& dataset, std::size_t samples, std::size_t batches);

  struct Room {
    std::int64_t first_row = 0;
    std::span<float> features;  // of as many samples as the largest batch has
    std::span<float> targets;
  };
  Room room(std::size_t batch);
  HostRows rows();

 private:
  const std::size_t samples_;
  const std::size_t feature_floats_;  // of a sample
  const std::size_t target_floats_;
  SharedMemory memory_;  // features of all batches, then their targets
  const std::span<float> features_;
  const std::span<float> targets_;
};

}  // namespace holdfast
