// As in Keras: from the initial rate down to the last one along a power of the remaining part, once or in cycles.

#include "holdfast/optim/polynomial_decay.h"

#include <algorithm>
#include <cmath>

#include "core/json_object.h"
#include "optim/check_option.h"

namespace holdfast {

PolynomialDecay::PolynomialDecay(float initial_learning_rate, std::int64_t decay_steps, PolynomialDecayOptions options)
    : initial_learning_rate_(initial_learning_rate), decay_steps_(decay_steps), options_(options) {
  check_decay("polynomial_decay", initial_learning_rate, decay_steps);
  check_option("polynomial_decay", "end_learning_rate", options.end_learning_rate, options.end_learning_rate >= 0,
               "not negative");
  check_option("polynomial_decay", "power", options.power, options.power > 0, "positive");
}

std::string PolynomialDecay::configuration() const {
  return JsonObject("polynomial_decay")
      .number("initial_learning_rate", initial_learning_rate_)
      .integer("decay_steps", decay_steps_)
      .number("end_learning_rate", options_.end_learning_rate)
      .number("power", options_.power)
      .boolean("cycle", options_.cycle)
      .text();
}

// Computed in double and rounded once, so that every rank and device gets the same float.
float PolynomialDecay::rate_after(std::int64_t updates) const {
  const double periods = static_cast<double>(updates) / static_cast<double>(decay_steps_);
  // At step 0 no cycle has begun, and the division below would be 0 / 0.
  const double cycles = options_.cycle ? std::max(1.0, std::ceil(periods)) : 1.0;
  const double part = std::min(periods / cycles, 1.0);
  const double end = options_.end_learning_rate;
  return static_cast<float>((initial_learning_rate_ - end) * std::pow(1.0 - part, static_cast<double>(options_.power)) +
                            end);
}

}  // namespace holdfast
