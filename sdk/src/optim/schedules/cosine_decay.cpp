// As in Keras: an optional linear warm-up, then half a cosine down to alpha times the top.

#include "holdfast/optim/cosine_decay.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/json_object.h"
#include "optim/check_option.h"

namespace holdfast {

CosineDecay::CosineDecay(float initial_learning_rate, std::int64_t decay_steps, CosineDecayOptions options)
    : initial_learning_rate_(initial_learning_rate), decay_steps_(decay_steps), options_(options) {
  check_decay("cosine_decay", initial_learning_rate, decay_steps);
  check_option("cosine_decay", "alpha", options.alpha, options.alpha >= 0 && options.alpha <= 1, "in [0, 1]");
  const float target = options.warmup_target.value_or(0);
  check_option("cosine_decay", "warmup_target", target, target >= 0, "not negative");
  check_count("cosine_decay", "warmup_steps", options.warmup_steps, 0);
}

std::string CosineDecay::configuration() const {
  // A resume compares this text, so members and their order are data.
  return JsonObject("cosine_decay")
      .number("initial_learning_rate", initial_learning_rate_)
      .integer("decay_steps", decay_steps_)
      .number("alpha", options_.alpha)
      .number_or_null("warmup_target", options_.warmup_target)
      .integer("warmup_steps", options_.warmup_steps)
      .text();
}

// Computed in double and rounded once, so that every rank and device gets the same float.
float CosineDecay::rate_after(std::int64_t updates) const {
  const double initial = initial_learning_rate_;
  const double top = options_.warmup_target.value_or(initial_learning_rate_);
  // Without a target there is no warm-up, whatever warmup_steps says, as in Keras.
  const std::int64_t warmup_steps = options_.warmup_target ? options_.warmup_steps : 0;
  if (updates < warmup_steps) {
    return static_cast<float>(initial +
                              (top - initial) * static_cast<double>(updates) / static_cast<double>(warmup_steps));
  }
  // After the last step the rate stays at its lowest.
  const double part =
      static_cast<double>(std::min(updates - warmup_steps, decay_steps_)) / static_cast<double>(decay_steps_);
  const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * part));
  return static_cast<float>(top * ((1.0 - options_.alpha) * cosine + options_.alpha));
}

}  // namespace holdfast
