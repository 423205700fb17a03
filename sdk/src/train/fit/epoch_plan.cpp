#include "train/fit/epoch_plan.h"

#include <algorithm>

#include "data/stages/class_weight_stage.h"
#include "data/stages/stage.h"

namespace holdfast {

EpochPlan::EpochPlan(const Dataset& data, const FitOptions& options)
    : described_(options.class_weights.empty() ? data : with_class_weights(data, options.class_weights)),
      // A copy of the data itself where batches stay as they are.
      data_(options.accumulate == 1 ? described_
                                    : same_batches(described_, described_.last_stage(), options.accumulate)),
      accumulate_(options.accumulate),
      steps_per_epoch_(options.steps_per_epoch),
      is_per_replica_(options.global_batch.policy == BatchPolicy::per_replica) {}

// Counted from the beginning of the fit(): with steps_per_epoch, an epoch may begin in the middle of a pass.
EpochPlan::Position EpochPlan::position(std::int64_t epoch, std::int64_t step) const {
  const std::int64_t steps_before = epoch * steps() + step;
  return {.pass = steps_before / data_.batches(), .batch = steps_before % data_.batches()};
}

std::int64_t EpochPlan::end_pass(std::int64_t epochs) const {
  // The place of the step after the last one. In the middle of a pass, that pass counts as well.
  const Position last = position(epochs, 0);
  return last.pass + (last.batch > 0 ? 1 : 0);
}

bool EpochPlan::is_epoch_done(const TrainState& state, const CallRecord& record) const {
  if (!record.per_replica || steps_per_epoch_ > 0) return state.batch == steps();
  return record.per_replica->batches_done == (state.epoch + 1) * data_.batches();
}

bool EpochPlan::is_beyond(const TrainState& state, const CallRecord& record) const {
  if (state.epoch > record.epochs) return true;
  if (!record.per_replica || steps_per_epoch_ > 0) return state.batch > steps();
  const std::int64_t done = record.per_replica->batches_done;
  return done < state.epoch * data_.batches() || done > (state.epoch + 1) * data_.batches();
}

std::int64_t EpochPlan::steps(const TrainState& state, const CallRecord& record) const {
  if (!record.per_replica || steps_per_epoch_ > 0) return steps();
  const std::int64_t left = (state.epoch + 1) * data_.batches() - record.per_replica->batches_done;
  const std::int64_t together = batches_together(record);
  return state.batch + (left + together - 1) / together;
}

EpochPlan::Position EpochPlan::position(const TrainState& state, const CallRecord& record) const {
  if (!record.per_replica) return position(state.epoch, state.batch);
  const std::int64_t done = record.per_replica->batches_done;
  return {.pass = done / data_.batches(), .batch = done % data_.batches()};
}

std::int64_t EpochPlan::end_pass(const TrainState& state, const CallRecord& record) const {
  if (!record.per_replica || steps_per_epoch_ == 0) return end_pass(record.epochs);
  const std::int64_t steps_left = (record.epochs - state.epoch) * steps_per_epoch_ - state.batch;
  const std::int64_t most = record.per_replica->batches_done + steps_left * batches_together(record);
  return (most + data_.batches() - 1) / data_.batches();
}

std::int64_t EpochPlan::batches_together(const CallRecord& record) {
  return record.per_replica ? record.per_replica->replicas() : 1;
}

void EpochPlan::count(CallRecord& record, std::int64_t samples) const {
  if (!record.per_replica) return;
  record.per_replica->batches_done += (samples + data_.batch_size() - 1) / data_.batch_size();
}

Dataset EpochPlan::data_for(int replicas) const {
  if (!is_per_replica_ || replicas == 1) return data_;
  // No more than there are: with drop_remainder, an epoch of larger batches would have none.
  return same_batches(data_, data_.last_stage(), std::clamp<std::int64_t>(data_.batches(), 1, replicas));
}

}  // namespace holdfast
