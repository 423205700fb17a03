#pragma once

// Which batch each step of a fit() takes, and what an epoch is: a pass over the data, or a number of steps
// (FitOptions::steps_per_epoch). The batch is a function of epoch and step alone, so nothing else needs to be saved.
// With BatchPolicy::per_replica steps differ in size, and the record of the call has a cursor.
// docs/decisions/batch-size.md

#include <cstdint>

#include "holdfast/data/dataset.h"
#include "holdfast/train/trainer.h"
#include "train/state/train_state.h"

namespace holdfast {

class EpochPlan {
 public:
  // For batched data and checked options. Throws Error{invalid_argument} for class weights that do not fit the data.
  EpochPlan(const Dataset& data, const FitOptions& options);

  // What is trained on: the samples with the weights of their classes, in batches of a whole step.
  const Dataset& data() const { return data_; }
  // As the caller batched it, with the weights of classes, for the record of the call.
  const Dataset& described() const { return described_; }
  std::int64_t accumulate() const { return accumulate_; }

  // Steps of an epoch whose batches are all as large.
  std::int64_t steps() const { return steps_per_epoch_ > 0 ? steps_per_epoch_ : data_.batches(); }

  struct Position {
    std::int64_t pass = 0;   // over the data, from 0: the epoch of the data set
    std::int64_t batch = 0;  // in that pass
  };
  // The place of step `step` (from 0) of an epoch; step steps() is the first one of the next epoch.
  Position position(std::int64_t epoch, std::int64_t step) const;
  // The pass after the last one that so many epochs touch.
  std::int64_t end_pass(std::int64_t epochs) const;

  // The same for a state within a call, whose record is `record`.
  bool is_epoch_done(const TrainState& state, const CallRecord& record) const;
  // Whether no fit() of this plan has such a position.
  bool is_beyond(const TrainState& state, const CallRecord& record) const;
  // As many steps as the epoch has in the end if the number of replicas stays.
  std::int64_t steps(const TrainState& state, const CallRecord& record) const;
  Position position(const TrainState& state, const CallRecord& record) const;
  // May be one pass too late where a step at the end of a pass has fewer batches than others.
  std::int64_t end_pass(const TrainState& state, const CallRecord& record) const;
  // How many batches of data() the next step takes, if the pass has so many left.
  static std::int64_t batches_together(const CallRecord& record);
  // Moves the cursor past a step of so many samples.
  void count(CallRecord& record, std::int64_t samples) const;
  // In batches of a step of so many replicas, for a first try.
  Dataset data_for(int replicas) const;

 private:
  Dataset described_;
  Dataset data_;
  std::int64_t accumulate_;
  std::int64_t steps_per_epoch_;  // 0: a pass over the data
  bool is_per_replica_;
};

}  // namespace holdfast
