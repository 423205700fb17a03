#pragma once

// How optimizers, schedules and clipping refuse an option that is out of its range.

#include <cstdint>
#include <memory>
#include <string>

#include "holdfast/optim/learning_rate.h"
#include "holdfast/optim/optimizer.h"

namespace holdfast {

// Throws Error{invalid_argument} unless `value` is finite and `is_in_range`. The sentence begins with
// `owner` and names the option, the value and `range`, such as "in [0, 1)".
void check_option(const std::string& owner, const std::string& option, float value, bool is_in_range,
                  const std::string& range);
// Throws Error{invalid_argument} if `count` is less than `least`.
void check_count(const std::string& owner, const std::string& option, std::int64_t count, std::int64_t least);
// Throws Error{invalid_argument} for a decay that begins with a negative rate, or that takes no step.
void check_decay(const std::string& owner, float initial_learning_rate, std::int64_t decay_steps);

// Throws Error{invalid_argument} for a constant that is negative or not finite. A schedule checks
// itself.
void check_learning_rate(const std::string& owner, const LearningRate& rate);

// An optimizer with these options and another rate, which its constructor checks.
template <class Kind, class Options>
std::unique_ptr<Optimizer> with_rate(Options options, const LearningRate& rate) {
  options.learning_rate = rate;
  return std::make_unique<Kind>(options);
}

}  // namespace holdfast
