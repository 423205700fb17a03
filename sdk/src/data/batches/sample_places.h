#pragma once

// Says which sample of a data set an error of a batch is of. Who computes a batch knows the place in it alone, and a
// shuffle brings other samples there in each epoch.

#include <fmt/format.h>

#include <cstdint>

#include "core/sample_error.h"
#include "data/batches/batch_loader.h"
#include "data/stages/stage.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// Returns what `run` returns. A SampleError of it counts the samples of `batch`, which is one of `data`. It becomes an
// Error that names the sample of the data set, with its file and row if these are known, before its own sentence.
template <class Run>
auto naming_sample_of(const Dataset& data, std::uint64_t seed, const Batch& batch, const Run& run) {
  try {
    return run();
  } catch (const SampleError& error) {
    HOLDFAST_ASSERT(error.sample() >= 0 && error.sample() < batch.samples);
    const std::int64_t position = batch.index * data.batch_size() + error.sample();
    throw Error(error.code(),
                fmt::format("{} of the data set: {}", name_of_sample(*data.last_stage(), seed, batch.epoch, position),
                            error.what()));
  }
}

}  // namespace holdfast
