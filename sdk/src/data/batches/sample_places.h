#pragma once

// Says which sample of a data set an error of a batch is of. Code that computes a batch only knows the place in it, and
// a shuffle brings other samples there in each epoch.

#include <fmt/format.h>

#include <cstdint>

#include "core/sample_error.h"
#include "data/batches/batch_loader.h"
#include "data/stages/stage.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// The error of one of the samples of `batch`, which is one of `data`: it counts those of the batch. The returned one
// names the sample of the data set, with its file and row if these are known, before its own sentence.
inline Error with_name_of_sample(const SampleError& error, const Dataset& data, std::uint64_t seed,
                                 const Batch& batch) {
  HOLDFAST_ASSERT(error.sample() >= 0 && error.sample() < batch.samples);
  const std::int64_t position = batch.index * data.batch_size() + error.sample();
  const std::string name = name_of_sample(*data.last_stage(), seed, batch.epoch, position);
  return Error(error.code(), fmt::format("{} of the data set: {}", name, error.what()));
}

// Returns what `run` returns. A SampleError of it gets the name of the sample.
template <class Run>
auto naming_sample_of(const Dataset& data, std::uint64_t seed, const Batch& batch, const Run& run) {
  try {
    return run();
  } catch (const SampleError& error) {
    throw with_name_of_sample(error, data, seed, batch);
  }
}

}  // namespace holdfast
