#pragma once

// A learning rate that is divided by a number that grows with time (keras.optimizers.schedules.InverseTimeDecay). After
// t updates it is
//
//   initial_learning_rate / (1 + decay_rate t / decay_steps)
//
// With `staircase`, t / decay_steps is rounded down, so the rate changes only every decay_steps updates.
//
//   InverseTimeDecay{0.1F, 1000, 0.5F}

#include "holdfast/optim/learning_rate_schedule.h"

namespace holdfast {

// As the options of Keras.
struct InverseTimeDecayOptions {
  bool staircase = false;  // the rate stays the same within each period
};

class InverseTimeDecay final : public LearningRateSchedule {
 public:
  // Throws Error{invalid_argument} unless the initial rate and decay_rate are at least 0 and decay_steps is positive.
  InverseTimeDecay(float initial_learning_rate, std::int64_t decay_steps, float decay_rate,
                   InverseTimeDecayOptions options = {});

  // What LearningRateSchedule promises. The rate is computed in double and rounded once.
  std::string configuration() const override;
  std::unique_ptr<LearningRateSchedule> clone() const override { return std::make_unique<InverseTimeDecay>(*this); }
  float rate_after(std::int64_t updates) const override;

 private:
  float initial_learning_rate_;
  std::int64_t decay_steps_;
  float decay_rate_;
  InverseTimeDecayOptions options_;
};

}  // namespace holdfast
