#include "holdfast/optim/learning_rate.h"

#include <fmt/format.h>

#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "optim/check_option.h"

namespace holdfast {

float LearningRate::of_update(std::int64_t step) const {
  HOLDFAST_ASSERT(step >= 1);
  if (!schedule_) return constant_;
  // Schedules of an application are not trusted: a NaN here would spoil all parameters at once.
  // A schedule counts the updates made before this one: 0 for the first step.
  const float rate = schedule_->rate_after(step - 1);
  check_option(schedule_->configuration(), fmt::format("its rate of step {}", step), rate, rate >= 0, "not negative");
  return rate;
}

std::optional<float> LearningRate::constant() const {
  return schedule_ ? std::nullopt : std::optional(constant_);
}

std::string LearningRate::configuration() const {
  return schedule_ ? schedule_->configuration() : json_number(constant_);
}

}  // namespace holdfast
