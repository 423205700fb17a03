#pragma once

// All samples of the source of a data set, copied once to the device that trains, and batches taken
// from there. For one thread at a time, like a memory space.

#include <cstdint>
#include <memory>
#include <span>

#include "compute/growing_floats.h"
#include "holdfast/core/memory_space.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

class ResidentSamples {
 public:
  // The data set has keep_on_device(). Blocks until the samples are on the device. The memory space
  // must outlive this object. Throws Error{out_of_memory} that says how much memory is missing.
  ResidentSamples(const Dataset& dataset, MemorySpace& memory);

  // Whether the samples of the data set come from the same source.
  bool are_source_of(const Dataset& dataset) const;

  // Views in the memory space, valid until the next call of take(). One sample follows the other.
  struct Views {
    std::span<const float> features;
    std::span<const float> targets;
  };
  // The samples at these positions of the source. Consecutive ones are not copied.
  Views take(std::span<const std::int64_t> positions);

 private:
  // The features or the targets of all samples.
  struct Column {
    Column(std::size_t floats, std::int64_t samples, MemorySpace& memory);
    std::span<const float> take(std::span<const std::int64_t> positions, MemorySpace& memory);

    std::size_t width;  // floats of a sample
    std::shared_ptr<float[]> all;
    std::size_t size;
    compute::GrowingFloats gathered;
  };

  void load(const Stage& source);

  const std::shared_ptr<const Stage> last_stage_;  // keeps the source alive
  const Stage* const source_;
  MemorySpace& memory_;
  Column features_;
  Column targets_;
};

}  // namespace holdfast
