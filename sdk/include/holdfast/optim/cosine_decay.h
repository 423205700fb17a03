#pragma once

// A learning rate that falls along half a cosine (Loshchilov and Hutter, "SGDR", ICLR 2017, one
// period), after an optional linear warm-up. The formula is that of
// keras.optimizers.schedules.CosineDecay. After t updates the rate is
//
//   t < warmup_steps:  initial + (warmup_target - initial) t / warmup_steps
//   otherwise:         top ((1 - alpha) (1 + cos(pi s / decay_steps)) / 2 + alpha)
//                      with s = min(t - warmup_steps, decay_steps)
//
// where top is warmup_target. Without a warmup_target, top is the initial rate and there is no warm-up.

#include <optional>

#include "holdfast/optim/learning_rate_schedule.h"

namespace holdfast {

// The defaults leave out the warm-up and end at a rate of 0.
struct CosineDecayOptions {
  float alpha = 0;                       // the final rate as a fraction of the top; in [0, 1]
  std::optional<float> warmup_target{};  // not negative
  std::int64_t warmup_steps = 0;         // not negative; without effect if there is no target
};

class CosineDecay final : public LearningRateSchedule {
 public:
  // Throws Error{invalid_argument} unless the initial rate is at least 0, decay_steps is positive and
  // the options are in their ranges.
  CosineDecay(float initial_learning_rate, std::int64_t decay_steps, CosineDecayOptions options = {});

  // What LearningRateSchedule promises. The rate is computed in double and rounded once.
  std::string configuration() const override;
  std::unique_ptr<LearningRateSchedule> clone() const override { return std::make_unique<CosineDecay>(*this); }
  float rate_after(std::int64_t updates) const override;

 private:
  float initial_learning_rate_;
  std::int64_t decay_steps_;
  CosineDecayOptions options_;
};

}  // namespace holdfast
