#pragma once

// A learning rate that changes at given steps (keras.optimizers.schedules.PiecewiseConstantDecay).
// After t updates it is values[i] for the first i with t <= boundaries[i], and the last value after all
// boundaries. So the update after 1000 updates still has the first rate below, as in Keras. n boundaries
// go with n + 1 values.
//
//   PiecewiseConstantDecay{{1000, 2000}, {0.1F, 0.01F, 0.001F}}

#include <vector>

#include "holdfast/optim/learning_rate_schedule.h"

namespace holdfast {

class PiecewiseConstantDecay final : public LearningRateSchedule {
 public:
  // Throws Error{invalid_argument} unless the boundaries are at least 0 and strictly increasing, the
  // values are at least 0, and there is one value more than there are boundaries.
  PiecewiseConstantDecay(std::vector<std::int64_t> boundaries, std::vector<float> values);

  // What LearningRateSchedule promises.
  std::string configuration() const override;
  std::unique_ptr<LearningRateSchedule> clone() const override {
    return std::make_unique<PiecewiseConstantDecay>(*this);
  }
  float rate_after(std::int64_t updates) const override;

 private:
  std::vector<std::int64_t> boundaries_;
  std::vector<float> values_;
};

}  // namespace holdfast
