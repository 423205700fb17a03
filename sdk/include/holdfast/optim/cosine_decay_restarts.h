#pragma once

// A learning rate that falls along half a cosine again and again (Loshchilov and Hutter, "SGDR: Stochastic Gradient
// Descent with Warm Restarts", ICLR 2017, section 3; so keras.optimizers.schedules.CosineDecayRestarts). Period i, from
// 0, takes first_decay_steps t_mul^i updates. At the part s of it, in [0, 1), the rate is
//
//   initial_learning_rate ((1 - alpha) m_mul^i (1 + cos(pi s)) / 2 + alpha)
//
//   CosineDecayRestarts{1e-3F, 1000, {.t_mul = 1.5F, .m_mul = 0.9F}}

#include "holdfast/optim/learning_rate_schedule.h"

namespace holdfast {

// The defaults are those of Keras: each period is twice as long as the one before it, and as high.
struct CosineDecayRestartsOptions {
  float t_mul = 2;  // at least 1: the length of a period as a multiple of the one before it
  float m_mul = 1;  // not negative: likewise its height
  float alpha = 0;  // in [0, 1]: the lowest rate as a fraction of the initial one
};

class CosineDecayRestarts final : public LearningRateSchedule {
 public:
  // Throws Error{invalid_argument} unless the initial rate is at least 0, first_decay_steps is positive and the options
  // are in their ranges. Keras also takes a t_mul below 1, with which its rates soon are NaN.
  CosineDecayRestarts(float initial_learning_rate, std::int64_t first_decay_steps,
                      CosineDecayRestartsOptions options = {});

  // What LearningRateSchedule promises. The rate is computed in double and rounded once.
  std::string configuration() const override;
  std::unique_ptr<LearningRateSchedule> clone() const override { return std::make_unique<CosineDecayRestarts>(*this); }
  float rate_after(std::int64_t updates) const override;

 private:
  float initial_learning_rate_;
  std::int64_t first_decay_steps_;
  CosineDecayRestartsOptions options_;
};

}  // namespace holdfast
