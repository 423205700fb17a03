#pragma once

// A learning rate that falls to another one along a power of time, linearly as it comes
// (keras.optimizers.schedules.PolynomialDecay). Behind t updates it is
//
//   (initial_learning_rate - end_learning_rate) (1 - min(t, d) / d)^power + end_learning_rate
//
// where d is decay_steps or, with `cycle`, the smallest multiple of it, but 0, that t does not exceed.

#include "holdfast/optim/learning_rate_schedule.h"

namespace holdfast {

struct PolynomialDecayOptions {
  float end_learning_rate = 1e-4F;  // not negative
  float power = 1;                  // positive
  bool cycle = false;
};

class PolynomialDecay final : public LearningRateSchedule {
 public:
  // Throws Error{invalid_argument} unless the initial rate is not negative, decay_steps is positive and options are in
  // their range.
  PolynomialDecay(float initial_learning_rate, std::int64_t decay_steps, PolynomialDecayOptions options = {});

  std::string configuration() const override;
  std::unique_ptr<LearningRateSchedule> clone() const override;
  float rate_after(std::int64_t updates) const override;

 private:
  float initial_learning_rate_;
  std::int64_t decay_steps_;
  PolynomialDecayOptions options_;
};

}  // namespace holdfast
