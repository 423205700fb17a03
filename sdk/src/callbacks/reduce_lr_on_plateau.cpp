// Counts as Keras does, so that a program that comes from there lowers its rate after the same epochs.
// See docs/decisions/learning-rates.md.

#include "holdfast/train/reduce_lr_on_plateau.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "optim/check_option.h"
#include "train/state/monitor.h"

namespace holdfast {

ReduceLROnPlateau::ReduceLROnPlateau(ReduceLROnPlateauOptions options) : options_(std::move(options)) {
  const std::string owner = "ReduceLROnPlateau";
  check_option(owner, "factor", static_cast<float>(options_.factor), options_.factor >= 0 && options_.factor < 1,
               "in [0, 1)");
  check_option(owner, "min_learning_rate", options_.min_learning_rate, options_.min_learning_rate >= 0, "not negative");
  check_option(owner, "min_delta", static_cast<float>(options_.min_delta), options_.min_delta >= 0, "not negative");
  check_count(owner, "patience", options_.patience, 1);
  check_count(owner, "cooldown", options_.cooldown, 0);
}

// fit() asks the metric of these names for a direction before its first step.
std::vector<std::string> ReduceLROnPlateau::compares() const {
  return options_.best == Best::automatic ? monitors() : std::vector<std::string>{};
}

CallbackState ReduceLROnPlateau::state() const {
  CallbackState state = {{"epochs_without_improvement", epochs_without_improvement_},
                         {"cooldown_left", cooldown_left_}};
  // Without a best value there is no number that would stand for none.
  if (has_best_) state["best_value"] = best_value_;
  return state;
}

void ReduceLROnPlateau::restore(const CallbackState& state) {
  epochs_without_improvement_ = std::get<std::int64_t>(state.at("epochs_without_improvement"));
  cooldown_left_ = std::get<std::int64_t>(state.at("cooldown_left"));
  has_best_ = state.contains("best_value");
  if (has_best_) best_value_ = std::get<double>(state.at("best_value"));
}

// Not called again after a recovery: then restore() brings back what the state says.
void ReduceLROnPlateau::on_fit_begin(TrainingContext&) {
  has_best_ = false;
  epochs_without_improvement_ = 0;
  cooldown_left_ = 0;
}

void ReduceLROnPlateau::on_epoch_end(TrainingContext& context, const Logs& logs) {
  const std::optional<double> monitored = monitored_in_epoch(context, logs, options_.monitor, "ReduceLROnPlateau");
  if (!monitored) return;
  const double value = *monitored;
  const Best best = direction_of(context, options_.best, options_.monitor, "ReduceLROnPlateau");
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    epochs_without_improvement_ = 0;
  }
  // NaN would stay the best: nothing is better than it.
  const bool is_first = !has_best_ && !std::isnan(value);
  if (is_first || (has_best_ && is_better(value, best_value_, best, options_.min_delta))) {
    has_best_ = true;
    best_value_ = value;
    epochs_without_improvement_ = 0;
  } else if (cooldown_left_ == 0 && ++epochs_without_improvement_ >= options_.patience) {
    lower(context);
  }
}

void ReduceLROnPlateau::lower(TrainingContext& context) {
  const std::optional<float> old = context.learning_rate();
  // At the limit there is nothing to lower, and epochs are counted on. An optimizer without a rate is refused.
  if (old && *old <= options_.min_learning_rate) return;
  const float lowered = std::max(static_cast<float>(old.value_or(0) * options_.factor), options_.min_learning_rate);
  // Each rank has the same logs and so the same counts. All set the same rate in the same epoch.
  context.set_learning_rate(lowered);
  cooldown_left_ = options_.cooldown;
  epochs_without_improvement_ = 0;
  if (!options_.verbose || !context.is_primary()) return;
  log(LogLevel::info, fmt::format("epoch {}: {} has not improved, so the learning rate falls to {}", context.epoch(),
                                  options_.monitor, lowered));
}

}  // namespace holdfast
