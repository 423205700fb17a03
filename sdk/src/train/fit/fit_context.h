#pragma once

// What fit() shows its callbacks, and what they ask of it. docs/decisions/callbacks.md

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/train/callback.h"
#include "train/fit/epoch_plan.h"
#include "train/fit/watching/call_context.h"
#include "train/saving/saver.h"
#include "train/step/training.h"

namespace holdfast {

class FitContext final : public CallContext {
 public:
  FitContext(Training& training, std::size_t call, const EpochPlan& plan) : CallContext(training, call), plan_(plan) {}

  std::int64_t batches_per_epoch() const override { return plan_.steps(training_.state, record()); }
  bool is_validated() const override {
    return (training_.state.epoch + 1) % training_.running_fit->validation_every == 0;
  }

  // After on_epoch_begin() and on_step_begin() there is one more step; after any other call fit() ends at once. A fit()
  // that is ending already is not changed.
  void stop_training() override {
    FitStage& stage = training_.state.stage;
    if (stage == FitStage::before_epoch) stage = FitStage::ending;
    const bool is_before_step = begins_step_ || training_.state.batch == 0;
    if (stage == FitStage::in_epoch) stage = is_before_step ? FitStage::last_step : FitStage::ending;
  }
  // True during the calls of on_step_begin().
  void set_begins_step(bool begins_step) { begins_step_ = begins_step; }

  void set_learning_rate(float rate) override {
    training_.trainable.check_learning_rate(rate);
    training_.state.learning_rate = rate;
  }

  void begin_profile() override;
  std::vector<ProfileSpan> end_profile() override { return training_.context->profile.end(); }
  void keep_weights() override;
  std::optional<std::int64_t> kept_epoch() const override {
    return record().kept_epoch < 0 ? std::nullopt : std::optional(record().kept_epoch);
  }
  void restore_kept_weights() override {
    if (kept_epoch()) training_.state.calls.at(call_).kept_use = CallRecord::KeptUse::due;
  }
  void ask_to_stop_training() override { training_.asks_end = true; }

  void save(const std::string& path, const SaveOptions& options) override;

  bool is_asked_to_save(const std::string& path) const {
    return std::any_of(pending_.begin(), pending_.end(),
                       [&](const PendingSave& pending) { return pending.path == path; });
  }
  // fit() takes them after all callbacks of a moment, so that a file has the state of each of them.
  std::vector<PendingSave> take_pending() { return std::exchange(pending_, {}); }
  // Those that were asked for before the calls of on_fit_end().
  std::vector<PendingSave> take_pending_before_end() {
    const auto later = std::stable_partition(pending_.begin(), pending_.end(),
                                             [](const PendingSave& pending) { return !pending.is_of_end; });
    std::vector<PendingSave> before(std::make_move_iterator(pending_.begin()), std::make_move_iterator(later));
    pending_.erase(pending_.begin(), later);
    return before;
  }
  // When the state for which they were made has been given up.
  void forget_pending() { pending_.clear(); }

 private:
  const EpochPlan& plan_;
  bool begins_step_ = false;
  std::vector<PendingSave> pending_;
};

}  // namespace holdfast
