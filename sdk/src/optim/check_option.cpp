// One sentence for all options, so that each names its owner, its value and its range.

#include "optim/check_option.h"

#include <fmt/format.h>

#include <cmath>

#include "holdfast/base/error.h"

namespace holdfast {

void check_option(const std::string& owner, const std::string& option, float value, bool is_in_range,
                  const std::string& range) {
  // Infinity would pass a range such as "positive".
  if (std::isfinite(value) && is_in_range) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{0}: {1} is {3}, but must be finite and {2}", owner, option, range, value));
}

void check_count(const std::string& owner, const std::string& option, std::int64_t count, std::int64_t least) {
  if (count >= least) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{0}: {1} is {3}, but must be at least {2}", owner, option, least, count));
}

void check_decay(const std::string& owner, float initial_learning_rate, std::int64_t decay_steps) {
  check_option(owner, "initial_learning_rate", initial_learning_rate, initial_learning_rate >= 0, "not negative");
  check_count(owner, "decay_steps", decay_steps, 1);
}

void check_learning_rate(const std::string& owner, const LearningRate& rate) {
  // A schedule has no constant, and has checked its own options.
  const float constant = rate.constant().value_or(0);
  check_option(owner, "learning_rate", constant, constant >= 0, "not negative");
}

}  // namespace holdfast
