// All batches share one block of memory, so one registration with the device covers them all. Features and targets are
// an array each, because a feed reads rows of one width. See docs/decisions/loading.md.

#include "data/batches/staged_batches.h"

#include "data/stages/stage.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

std::span<float> floats_in(SharedMemory& memory) {
  const std::span<std::byte> bytes = memory.writable();
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

StagedBatches::StagedBatches(const Dataset& dataset, std::size_t samples, std::size_t batches)
    : samples_(samples),
      feature_floats_(dataset.last_stage()->feature_words()),
      target_floats_(dataset.last_stage()->target_words()),
      memory_(SharedMemory::create("holdfast-batches",
                                   batches * samples * (feature_floats_ + target_floats_) * sizeof(float))),
      features_(floats_in(memory_).first(batches * samples * feature_floats_)),
      targets_(floats_in(memory_).subspan(features_.size())) {
  HOLDFAST_ASSERT(samples > 0 && batches > 0);
}

StagedBatches::Room StagedBatches::room(std::size_t batch) {
  const std::size_t row = batch * samples_;
  HOLDFAST_ASSERT((row + samples_) * feature_floats_ <= features_.size());
  return {.first_row = static_cast<std::int64_t>(row),
          .features = features_.subspan(row * feature_floats_, samples_ * feature_floats_),
          .targets = targets_.subspan(row * target_floats_, samples_ * target_floats_)};
}

HostRows StagedBatches::rows() {
  return {.features = features_, .targets = targets_, .memory = memory_.writable()};
}

}  // namespace holdfast
