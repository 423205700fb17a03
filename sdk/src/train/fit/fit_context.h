#pragma once

// What fit() shows its callbacks, and what they ask of it. docs/decisions/callbacks.md

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/train/callback.h"
#include "train/fit/epoch_plan.h"
#include "train/saving/saver.h"
#include "train/step/training.h"

namespace holdfast {

class FitContext final : public TrainingContext {
 public:
  // Belongs to call number `call` (from 0) of the Trainer.
  FitContext(Training& training, std::size_t call, const EpochPlan& plan)
      : training_(training), call_(call), plan_(plan) {}

  int rank() const override { return training_.context->rank; }
  int replicas() const override { return training_.context->size; }
  int generation() const override { return training_.context->generation; }
  std::string run_directory() const override { return training_.context->trainer_directory(); }
  bool writes_files() const override { return training_.context->writes_files; }
  bool writes_savepoints() const override { return training_.keeps_savepoints(); }
  std::vector<std::string> savepoint_copies() const override { return training_.context->copies_of_trainer(); }
  int saving_threads() const override { return training_.context->saving_threads; }
  FileSystem& file_system() const override { return training_.files; }
  std::int64_t call() const override { return static_cast<std::int64_t>(call_); }
  int trainer() const override { return std::max(training_.context->trainer, 0); }
  std::int64_t step() const override { return training_.state.step; }
  std::int64_t epoch() const override { return training_.state.epoch; }
  std::int64_t epochs() const override { return record().epochs; }
  std::int64_t batch_in_epoch() const override { return training_.state.batch; }
  std::int64_t batches_per_epoch() const override { return plan_.steps(training_.state, record()); }
  std::int64_t samples_in_epoch() const override { return record().epoch_samples; }
  bool is_validated() const override {
    return (training_.state.epoch + 1) % training_.running_fit->validation_every == 0;
  }
  const std::vector<Logs>& history() const override { return record().history; }
  std::vector<std::vector<Logs>> earlier_histories() const override;
  std::optional<Best> best_of(const std::string& log) const override {
    return training_.trainable.best_of(log.starts_with("val_") ? log.substr(4) : log);
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

  std::optional<float> learning_rate() const override {
    const std::optional<float> set = training_.state.learning_rate;
    return set ? set : training_.trainable.learning_rate(training_.state.step + 1);
  }
  void set_learning_rate(float rate) override {
    training_.trainable.check_learning_rate(rate);
    training_.state.learning_rate = rate;
  }

  void begin_profile() override;
  std::vector<ProfileSpan> end_profile() override { return training_.context->profile.end(); }
  std::vector<WeightArray> weights() const override;
  std::string graph() const override { return present_graph(training_.state); }
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
  // Looked up each time: the state may have come from another replica meanwhile.
  const CallRecord& record() const { return training_.state.calls.at(call_); }

  Training& training_;
  const std::size_t call_;
  const EpochPlan& plan_;
  bool begins_step_ = false;
  std::vector<PendingSave> pending_;
};

}  // namespace holdfast
