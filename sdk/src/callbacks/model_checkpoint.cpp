// Which savepoints stay is decided by what the savepoints say about themselves; the state of this
// callback only tells whether one is worth writing. So a run that goes back to an older state cannot
// delete or overwrite a better savepoint. A savepoint that was made only because fit() ended goes when
// a longer run has its successor. See docs/decisions/savepoints.md.

#include "holdfast/train/model_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "train/state/monitor.h"
#include "train/state/resume.h"

namespace holdfast {
ModelCheckpoint::ModelCheckpoint(ModelCheckpointOptions options) : options_(std::move(options)) {
  // Checked at construction, where the mistake is, and not at the first savepoint.
  const auto is_negative = [](std::int64_t number) { return number < 0; };
  if (is_negative(options_.every_steps) || is_negative(options_.every_epochs) || is_negative(options_.keep_last) ||
      is_negative(options_.keep_best) || is_negative(options_.keep_every_steps) || is_negative(options_.threads)) {
    throw Error(ErrorCode::invalid_argument,
                "ModelCheckpoint needs numbers of at least 0 for steps, epochs, threads and savepoints to keep");
  }
}

std::string ModelCheckpoint::name() const {
  return "model_checkpoint/" + options_.directory;
}

std::vector<std::string> ModelCheckpoint::monitors() const {
  if (options_.best_by.empty()) return {};
  return {options_.best_by};
}

CallbackState ModelCheckpoint::state() const {
  // Left out at their defaults, so that savepoints keep the bytes of runs without these options.
  CallbackState state;
  if (!best_values_.empty()) state["best_values"] = best_values_;
  if (superseded_step_ >= 0) state["superseded_step"] = superseded_step_;
  return state;
}

void ModelCheckpoint::restore(const CallbackState& state) {
  best_values_.clear();
  superseded_step_ = state.contains("superseded_step") ? std::get<std::int64_t>(state.at("superseded_step")) : -1;
  if (state.contains("best_values")) best_values_ = std::get<std::vector<double>>(state.at("best_values"));
}

// The callback may have served another run before, whose file system is gone.
void ModelCheckpoint::on_fit_begin(TrainingContext&) {
  keep_ = nullptr;
}

void ModelCheckpoint::on_step_end(TrainingContext& context, const Logs&) {
  if (options_.every_steps > 0 && context.step() % options_.every_steps == 0)
    save(context, options_.when_storage_is_slow);
}

void ModelCheckpoint::on_epoch_end(TrainingContext& context, const Logs& logs) {
  const std::optional<double> value =
      options_.best_by.empty() ? std::nullopt : monitored_in_epoch(context, logs, options_.best_by, name());
  const bool is_among_best = value && enter_best(*value);
  const bool is_due = options_.every_epochs > 0 && (context.epoch() + 1) % options_.every_epochs == 0;
  // No later savepoint makes up for one among the best, so it is never skipped.
  if (is_among_best || is_due) save(context, is_among_best ? WhenStorageIsSlow::wait : options_.when_storage_is_slow);
}

// Returns whether `value` is among the best so far, and remembers it.
bool ModelCheckpoint::enter_best(double value) {
  if (std::isnan(value)) return false;
  const auto place = std::find_if(best_values_.begin(), best_values_.end(),
                                  [&](double better) { return is_better(value, better, options_.best, 0); });
  if (place - best_values_.begin() >= options_.keep_best) return false;
  // Before the first worse value: an equal one that is older keeps its place.
  best_values_.insert(place, value);
  if (static_cast<std::int64_t>(best_values_.size()) > options_.keep_best) best_values_.pop_back();
  return true;
}

void ModelCheckpoint::on_fit_end(TrainingContext& context, const Logs&) {
  save(context, WhenStorageIsSlow::wait);
}

void ModelCheckpoint::on_fit_extended(std::int64_t step, std::int64_t epoch, const Logs& logs) {
  // A savepoint that a longer run would have made, too, must stay.
  const bool is_due = (options_.every_steps > 0 && step % options_.every_steps == 0) ||
                      (options_.every_epochs > 0 && epoch % options_.every_epochs == 0);
  const bool is_among_best =
      !options_.best_by.empty() && logs.contains(options_.best_by) &&
      std::find(best_values_.begin(), best_values_.end(), logs.at(options_.best_by)) != best_values_.end();
  if (!is_due && !is_among_best) superseded_step_ = step;
}

std::string ModelCheckpoint::directory(const TrainingContext& context) const {
  const std::string directory = options_.directory.empty() ? context.run_directory() : options_.directory;
  if (directory.empty()) {
    throw Error(
        ErrorCode::invalid_argument,
        "ModelCheckpoint needs a directory: this program runs without supervise(), so there is no run directory");
  }
  return directory;
}

bool ModelCheckpoint::is_kept_always(std::int64_t step) const {
  return options_.keep_every_steps > 0 && step % options_.keep_every_steps == 0;
}

void ModelCheckpoint::save(TrainingContext& context, WhenStorageIsSlow when_storage_is_slow) {
  if (!context.writes_files()) return;
  const int threads = options_.threads > 0 ? options_.threads : context.saving_threads();
  const std::string folder = directory(context);
  // Only the primary rank writes, so only there is `keep_` needed and when_durable called.
  if (context.is_primary() && !keep_) {
    context.file_system().create_folders(folder);
    const bool serves_recovery = folder == context.run_directory();
    ModelCheckpointOptions options = options_;
    options.threads = threads;
    keep_ = make_savepoint_keeper(context.file_system(), folder,
                                  serves_recovery ? context.savepoint_copies() : std::vector<std::string>{}, options);
  }
  const std::string saved = savepoint_name(context.step());
  std::function<void()> drop = [] {};
  if (const std::int64_t step = std::exchange(superseded_step_, -1); step >= 0 && step != context.step()) {
    std::vector<std::string> folders = {folder};
    if (folder == context.run_directory()) {
      for (const std::string& copy : context.savepoint_copies()) folders.push_back(copy);
    }
    drop = [&files = context.file_system(), folders, saved, step] {
      drop_savepoint(files, folders, savepoint_name(step), saved);
    };
  }
  context.save(folder + "/" + saved,
               {.when_storage_is_slow = is_kept_always(context.step()) ? WhenStorageIsSlow::wait : when_storage_is_slow,
                .compression = options_.compression,
                .zstd_level = options_.zstd_level,
                .threads = threads,
                .when_durable = [keep = keep_, drop, saved] {
                  drop();
                  keep(saved);
                }});
}

}  // namespace holdfast
