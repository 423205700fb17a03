#include "train/fit/epoch_plan.h"

#include "data/stages/class_weight_stage.h"
#include "data/stages/stage.h"

namespace holdfast {

EpochPlan::EpochPlan(const Dataset& data, const FitOptions& options)
    : described_(options.class_weights.empty() ? data : with_class_weights(data, options.class_weights)),
      // A copy of the data itself where batches stay as they are.
      data_(options.accumulate == 1 ? described_
                                    : same_batches(described_, described_.last_stage(), options.accumulate)),
      accumulate_(options.accumulate),
      steps_per_epoch_(options.steps_per_epoch) {}

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

}  // namespace holdfast
