#pragma once

// A learning rate that falls by the same factor over and over (keras.optimizers.schedules.ExponentialDecay): behind t
// updates it is
//
//   initial_learning_rate decay_rate^(t / decay_steps)
//
// with the exponent rounded down where `staircase`.

#include "holdfast/optim/learning_rate_schedule.h"

namespace holdfast {

struct ExponentialDecayOptions {
  bool staircase = false;
};

class ExponentialDecay final : public LearningRateSchedule {
 public:
  // Throws Error{invalid_argument} unless the initial rate is not negative, and decay_steps and decay_rate are
  // positive.
  ExponentialDecay(float initial_learning_rate, std::int64_t decay_steps, float decay_rate,
                   ExponentialDecayOptions options = {});

  std::string configuration() const override;
  std::unique_ptr<LearningRateSchedule> clone() const override;
  float rate_after(std::int64_t updates) const override;

 private:
  float initial_learning_rate_;
  std::int64_t decay_steps_;
  float decay_rate_;
  ExponentialDecayOptions options_;
};

}  // namespace holdfast
