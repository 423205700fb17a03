#pragma once

// A learning rate that falls by a constant factor (keras.optimizers.schedules.ExponentialDecay). After
// t updates it is
//
//   initial_learning_rate decay_rate^(t / decay_steps)
//
// With `staircase` the exponent is rounded down, so the rate changes only every decay_steps updates.
//
//   ExponentialDecay{0.1F, 1000, 0.96F}

#include "holdfast/optim/learning_rate_schedule.h"

namespace holdfast {

// As the options of Keras.
struct ExponentialDecayOptions {
  bool staircase = false;  // the rate stays the same within each period
};

class ExponentialDecay final : public LearningRateSchedule {
 public:
  // Throws Error{invalid_argument} unless the initial rate is at least 0 and the other two are
  // positive.
  ExponentialDecay(float initial_learning_rate, std::int64_t decay_steps, float decay_rate,
                   ExponentialDecayOptions options = {});

  // What LearningRateSchedule promises. The rate is computed in double and rounded once.
  std::string configuration() const override;
  std::unique_ptr<LearningRateSchedule> clone() const override { return std::make_unique<ExponentialDecay>(*this); }
  float rate_after(std::int64_t updates) const override;

 private:
  float initial_learning_rate_;
  std::int64_t decay_steps_;
  float decay_rate_;
  ExponentialDecayOptions options_;
};

}  // namespace holdfast
