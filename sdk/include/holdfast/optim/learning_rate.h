#pragma once

// What optimizers take as their learning rate: a number, or a schedule.
//
//   Adam{1e-3F}
//   AdamW{{.learning_rate = CosineDecay{1e-3F, 10'000}}}

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "holdfast/optim/learning_rate_schedule.h"

namespace holdfast {

class LearningRate {
 public:
  LearningRate(float rate) : constant_(rate) {}  // NOLINT(google-explicit-constructor)
  // Holds a copy.
  LearningRate(const LearningRateSchedule& schedule) : schedule_(schedule.clone()) {}  // NOLINT

  // Of the update with this number, from 1. Throws Error{invalid_argument} where the schedule gives a number that is
  // negative or not finite.
  float of_update(std::int64_t step) const;
  // Empty for a schedule.
  std::optional<float> constant() const;
  // A number, or the schedule's object.
  std::string configuration() const;

 private:
  float constant_ = 0;
  std::shared_ptr<const LearningRateSchedule> schedule_;
};

}  // namespace holdfast
