// The state is what restore() needs to stop at the same epoch after a recovery.

#include "holdfast/train/early_stopping.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "train/state/monitor.h"

namespace holdfast {

EarlyStopping::EarlyStopping(EarlyStoppingOptions options) : options_(std::move(options)) {
  if (options_.min_delta < 0 || options_.patience < 0 || options_.start_from_epoch < 0) {
    throw Error(ErrorCode::invalid_argument,
                "EarlyStopping needs a min_delta, a patience and a start_from_epoch of at least 0");
  }
}

std::vector<std::string> EarlyStopping::compares() const {
  return options_.best == Best::automatic ? monitors() : std::vector<std::string>{};
}

CallbackState EarlyStopping::state() const {
  CallbackState state = {{"epochs_without_improvement", epochs_without_improvement_}};
  // Without a best value there is no number that would stand for none.
  if (has_best_) state["best_value"] = best_value_;
  return state;
}

void EarlyStopping::restore(const CallbackState& state) {
  epochs_without_improvement_ = std::get<std::int64_t>(state.at("epochs_without_improvement"));
  has_best_ = state.contains("best_value");
  if (has_best_) best_value_ = std::get<double>(state.at("best_value"));
}

// Not called again after a recovery: then restore() brings back what the state says.
void EarlyStopping::on_fit_begin(TrainingContext&) {
  has_best_ = false;
  epochs_without_improvement_ = 0;
}

// Counts as Keras does, so that a program that comes from there stops after the same epoch.
void EarlyStopping::on_epoch_end(TrainingContext& context, const Logs& logs) {
  const std::optional<double> monitored = monitored_in_epoch(context, logs, options_.monitor, "EarlyStopping");
  if (!monitored || context.epoch() < options_.start_from_epoch) return;
  const double value = *monitored;
  const Best best = direction_of(context, options_.best, options_.monitor, "EarlyStopping");
  // The first one is kept in any case: a fit() in which nothing improves ends with it, as in Keras.
  if (options_.restore_best_weights && !context.kept_epoch()) context.keep_weights();
  ++epochs_without_improvement_;
  const auto improves_on = [&](double reference) { return is_better(value, reference, best, options_.min_delta); };
  // NaN would stay the best: nothing is better than it.
  const bool is_first = !has_best_ && !std::isnan(value);
  if (is_first || (has_best_ && improves_on(best_value_))) {
    has_best_ = true;
    best_value_ = value;
    if (options_.restore_best_weights) context.keep_weights();
    // An epoch that is better than all before it never stops the training, even below the baseline.
    if (!options_.baseline || improves_on(*options_.baseline)) epochs_without_improvement_ = 0;
  } else if (epochs_without_improvement_ >= options_.patience && context.epoch() > 0) {
    context.stop_training();
    if (!options_.verbose || !context.is_primary()) return;
    log(LogLevel::info, fmt::format("epoch {}: {} has not improved for {} epochs, so fit() ends", context.epoch(),
                                    options_.monitor, epochs_without_improvement_));
  }
}

void EarlyStopping::on_fit_end(TrainingContext& context, const Logs&) {
  if (options_.restore_best_weights) context.restore_kept_weights();
}

}  // namespace holdfast
