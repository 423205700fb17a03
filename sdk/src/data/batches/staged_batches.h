#pragma once

// Room in the memory of the host for batches that are loaded ahead and travel to a device from there.
// All batches are rows of one array, which is pinned as a whole. Each batch has as many rows as the
// largest one needs.

#include <cstddef>
#include <cstdint>
#include <span>

#include "holdfast/base/shared_memory.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// Arrays of the host with one row per sample, and the whole memory in which they lie.
struct HostRows {
  std::span<const float> features;
  std::span<const float> targets;
  std::span<std::byte> memory;
};

class StagedBatches {
 public:
  // Makes room for `batches` batches of at most `samples` samples. Asserts that both are at least 1.
  StagedBatches(const Dataset& dataset, std::size_t samples, std::size_t batches);

  // The rows of one batch, from `first_row` on.
  struct Room {
    std::int64_t first_row = 0;
    std::span<float> features;  // for as many samples as the largest batch has
    std::span<float> targets;
  };
  Room room(std::size_t batch);
  // The rows of all batches.
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
