// As in Keras: the rate falls fast at first, and ever more slowly.

#include "holdfast/optim/inverse_time_decay.h"

#include <cmath>

#include "core/json_object.h"
#include "optim/check_option.h"

namespace holdfast {

InverseTimeDecay::InverseTimeDecay(float initial_learning_rate, std::int64_t decay_steps, float decay_rate,
                                   InverseTimeDecayOptions options)
    : initial_learning_rate_(initial_learning_rate),
      decay_steps_(decay_steps),
      decay_rate_(decay_rate),
      options_(options) {
  check_decay("inverse_time_decay", initial_learning_rate, decay_steps);
  // A negative one would make the divisor 0 at some step.
  check_option("inverse_time_decay", "decay_rate", decay_rate, decay_rate >= 0, "not negative");
}

std::string InverseTimeDecay::configuration() const {
  // A resume compares this text, so members and their order are data.
  return JsonObject("inverse_time_decay")
      .number("initial_learning_rate", initial_learning_rate_)
      .integer("decay_steps", decay_steps_)
      .number("decay_rate", decay_rate_)
      .boolean("staircase", options_.staircase)
      .text();
}

// Computed in double and rounded once, so that every rank and device gets the same float.
float InverseTimeDecay::rate_after(std::int64_t updates) const {
  const double periods = static_cast<double>(updates) / static_cast<double>(decay_steps_);
  const double passed = options_.staircase ? std::floor(periods) : periods;
  return static_cast<float>(initial_learning_rate_ / (1.0 + decay_rate_ * passed));
}

}  // namespace holdfast
