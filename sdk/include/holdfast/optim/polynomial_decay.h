#pragma once

// A learning rate that falls to another one along a power of time, linearly by default
// (keras.optimizers.schedules.PolynomialDecay). After t updates it is
//
//   (initial_learning_rate - end_learning_rate) (1 - min(t, d) / d)^power + end_learning_rate
//
// where d is decay_steps. With `cycle`, d is the smallest positive multiple of decay_steps that is at
// least t.

#include "holdfast/optim/learning_rate_schedule.h"

namespace holdfast {

// With `cycle` the rate rises again after each period.
struct PolynomialDecayOptions {
  float end_learning_rate = 1e-4F;  // not negative
  float power = 1;                  // positive
  bool cycle = false;               // the rate rises again after each period
};

class PolynomialDecay final : public LearningRateSchedule {
 public:
  // Throws Error{invalid_argument} unless the initial rate is at least 0, decay_steps is positive and
  // the options are in their ranges.
  PolynomialDecay(float initial_learning_rate, std::int64_t decay_steps, PolynomialDecayOptions options = {});

  // What LearningRateSchedule promises. The rate is computed in double and rounded once.
  std::string configuration() const override;
  std::unique_ptr<LearningRateSchedule> clone() const override { return std::make_unique<PolynomialDecay>(*this); }
  float rate_after(std::int64_t updates) const override;

 private:
  float initial_learning_rate_;
  std::int64_t decay_steps_;
  PolynomialDecayOptions options_;
};

}  // namespace holdfast
