// As in Keras: the rate is multiplied by decay_rate once every decay_steps, in steps or continuously.

#include "holdfast/optim/exponential_decay.h"

#include <cmath>

#include "core/json_object.h"
#include "optim/check_option.h"

namespace holdfast {

ExponentialDecay::ExponentialDecay(float initial_learning_rate, std::int64_t decay_steps, float decay_rate,
                                   ExponentialDecayOptions options)
    : initial_learning_rate_(initial_learning_rate),
      decay_steps_(decay_steps),
      decay_rate_(decay_rate),
      options_(options) {
  check_decay("exponential_decay", initial_learning_rate, decay_steps);
  check_option("exponential_decay", "decay_rate", decay_rate, decay_rate > 0, "positive");
}

std::string ExponentialDecay::configuration() const {
  return JsonObject("exponential_decay")
      .number("initial_learning_rate", initial_learning_rate_)
      .integer("decay_steps", decay_steps_)
      .number("decay_rate", decay_rate_)
      .boolean("staircase", options_.staircase)
      .text();
}

// Computed in double and rounded once, so that every rank and device gets the same float.
float ExponentialDecay::rate_after(std::int64_t updates) const {
  const double periods = static_cast<double>(updates) / static_cast<double>(decay_steps_);
  // The floor keeps the rate constant within each period.
  const double exponent = options_.staircase ? std::floor(periods) : periods;
  return static_cast<float>(initial_learning_rate_ * std::pow(static_cast<double>(decay_rate_), exponent));
}

}  // namespace holdfast
