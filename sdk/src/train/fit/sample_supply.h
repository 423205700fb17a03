#pragma once

// How a Trainer's samples get to where they are needed: loaded into the host's memory, kept on a device, or sent there
// in advance. Samples on a device stay there for all generations, since no bit of them changes.
// docs/decisions/loading.md

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batches/batch_loader.h"
#include "data/batches/pinned_samples.h"
#include "data/batches/resident_samples.h"
#include "holdfast/data/dataset.h"
#include "train/step/training.h"

namespace holdfast {

// Only the training thread uses it.
class SampleSupply {
 public:
  explicit SampleSupply(Training& training) : training_(training) {}

  // Copies or pins what `data` wants on a device; quick if that was done before.
  void prepare(const Dataset& data) { ways_of(data); }
  struct Course {
    std::int64_t first_epoch = 0;
    std::int64_t first_batch = 0;
    std::int64_t end_epoch = 1;
    int shards_together = 1;            // StepRunner::TrainOptions
    std::int64_t batches_together = 1;  // BatchLoader
  };
  // This rank's shards from the first batch on, to the end of epoch `end_epoch` - 1.
  std::unique_ptr<BatchLoader> open(const Dataset& data, const Course& course);

 private:
  SampleWays ways_of(const Dataset& data);
  SampleFeeds stage(const Dataset& data, const HostRows& rows);
  int most_loading_threads() const;
  void tell_threads(int threads) const;

  Training& training_;
  // One for each source.
  std::vector<std::unique_ptr<ResidentSamples>> resident_;
  std::vector<std::unique_ptr<PinnedSamples>> pinned_;
  bool can_stage_ = true;  // until a try fails
};

}  // namespace holdfast
