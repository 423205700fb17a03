#pragma once

// All samples of a data set's source, copied once to where they are trained on, and batches of them taken from there.
// For one thread at a time, as the memory space is.

#include <cstdint>
#include <memory>
#include <span>

#include "compute/growing_floats.h"
#include "holdfast/core/memory_space.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

class ResidentSamples {
 public:
  // Of a data set that is kept on the device. Returns when they are there; the memory space outlives
  // this object. Throws Error{out_of_memory} saying how much is missing.
  ResidentSamples(const Dataset& dataset, MemorySpace& memory);

  // Whether the data set's samples come from the same source.
  bool are_source_of(const Dataset& dataset) const;

  // In the memory space, until the next call; samples that follow each other in the source are not even copied.
  struct Views {
    std::span<const float> features;  // one sample behind the other
    std::span<const float> targets;
  };
  // Those at these positions of the source.
  Views take(std::span<const std::int64_t> positions);

 private:
  // One of the two arrays of a source.
  struct Column {
    Column(std::size_t floats, std::int64_t samples, MemorySpace& memory);
    std::span<const float> take(std::span<const std::int64_t> positions, MemorySpace& memory);

    std::size_t width;  // floats of a sample
    std::shared_ptr<float[]> all;
    std::size_t size;
    compute::GrowingFloats gathered;
  };

  void load(const Stage& source);

  const std::shared_ptr<const Stage> last_stage_;  // keeps the source
  const Stage* const source_;
  MemorySpace& memory_;
  Column features_;
  Column targets_;
};

}  // namespace holdfast
