#pragma once

// Sets the learning rate at the beginning of each epoch (keras.callbacks.LearningRateScheduler):
//
//   trainer.fit(data, {.epochs = 20, .callbacks = {LearningRateScheduler{[](std::int64_t epoch, float rate) {
//     return epoch < 10 ? rate : rate * 0.9F;
//   }}}});
//
// The rate is part of the training state, so a run that was interrupted goes on with the rate that it
// had. A rate that is a function of the step alone is better a LearningRateSchedule of the optimizer:
// that is part of the configuration, and a run that resumes with another one is refused.

#include <cstdint>
#include <functional>
#include <string>

#include "holdfast/train/callback.h"

namespace holdfast {

struct LearningRateSchedulerOptions {
  // Whether the primary rank logs the rate of each epoch, at level info.
  bool verbose = false;
};

class LearningRateScheduler final : public Callback {
 public:
  // The epoch from 0, and the rate of the step before; returns the rate of all steps of this epoch. It must
  // depend on nothing else, or replicas would differ.
  using Schedule = std::function<float(std::int64_t epoch, float rate)>;

  // Throws Error{invalid_argument} for an empty function.
  explicit LearningRateScheduler(Schedule schedule, LearningRateSchedulerOptions options = {});

  std::string name() const override { return "learning_rate_scheduler"; }
  // Throws Error{unsupported} for an optimizer without a learning rate, and what
  // TrainingContext::set_learning_rate() throws.
  void on_epoch_begin(TrainingContext& context) override;

 private:
  Schedule schedule_;
  LearningRateSchedulerOptions options_;
};

}  // namespace holdfast
