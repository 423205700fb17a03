#pragma once

// A learning rate that falls along half a cosine (Loshchilov and Hutter, ICLR 2017, one period), with a linear warm-up
// before that where there is a target for it (keras.optimizers.schedules.CosineDecay). Behind t updates it is
//
//   t < warmup_steps:  initial + (warmup_target - initial) t / warmup_steps
//   else:              top ((1 - alpha) (1 + cos(pi s / decay_steps)) / 2 + alpha),  s = min(t - warmup_steps,
//   decay_steps)
//
// where top is warmup_target. Without one it is the initial rate, and there is no warm-up.

#include <optional>

#include "holdfast/optim/learning_rate_schedule.h"

namespace holdfast {

struct CosineDecayOptions {
  float alpha = 0;                       // what is left at the end, as a part of the top; in [0, 1]
  std::optional<float> warmup_target{};  // not negative
  std::int64_t warmup_steps = 0;         // not negative; without effect where there is no target
};

class CosineDecay final : public LearningRateSchedule {
 public:
  // Throws Error{invalid_argument} unless the initial rate is not negative, decay_steps is positive and options are in
  // their range.
  CosineDecay(float initial_learning_rate, std::int64_t decay_steps, CosineDecayOptions options = {});

  std::string configuration() const override;
  std::unique_ptr<LearningRateSchedule> clone() const override;
  float rate_after(std::int64_t updates) const override;

 private:
  float initial_learning_rate_;
  std::int64_t decay_steps_;
  CosineDecayOptions options_;
};

}  // namespace holdfast
