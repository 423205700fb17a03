#pragma once

// The learning rate of an optimizer: a number, or a schedule.
//
//   Adam{1e-3F}
//   AdamW{{.learning_rate = CosineDecay{1e-3F, 10'000}}}
//
// Converts from both, so applications never name this class. Immutable; any thread may use it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "holdfast/optim/learning_rate_schedule.h"

namespace holdfast {

class LearningRate {
 public:
  // The same rate for all updates.
  LearningRate(float rate) : constant_(rate) {}  // NOLINT(google-explicit-constructor)
  // Holds a copy of the schedule.
  LearningRate(const LearningRateSchedule& schedule) : schedule_(schedule.clone()) {}  // NOLINT

  // The rate of the update with this number, counted from 1. Throws Error{invalid_argument} if the
  // schedule gives a number that is negative or not finite.
  float of_update(std::int64_t step) const;
  // The number; empty for a schedule.
  std::optional<float> constant() const;
  // JSON: the number, or the object of the schedule.
  std::string configuration() const;

 private:
  float constant_ = 0;
  std::shared_ptr<const LearningRateSchedule> schedule_;
};

}  // namespace holdfast
