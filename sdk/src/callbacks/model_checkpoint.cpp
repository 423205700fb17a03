// Which savepoints stay is decided by what the savepoints say about themselves; the state of this
// callback only tells whether one is worth writing. So a run that goes back to an older state cannot
// delete or overwrite a better savepoint. A savepoint that was made only because fit() ended goes when
// a longer run has its successor. Files with names of their own serve no recovery, and none is deleted. See
// docs/decisions/savepoints.md.

#include "holdfast/train/model_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "callbacks/file_name_pattern.h"
#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "holdfast/base/log.h"
#include "train/state/monitor.h"
#include "train/state/resume.h"

namespace holdfast {
namespace {

std::shared_ptr<const FileNamePattern> checked_file_name(const ModelCheckpointOptions& options) {
  auto pattern = std::make_shared<const FileNamePattern>(options.file_name);
  const bool is_of_validation =
      std::ranges::any_of(pattern->logged_names(), [](const std::string& name) { return name.starts_with("val_"); });
  if (options.every_steps > 0 && is_of_validation) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("ModelCheckpoint cannot name files \"{}\" in the middle of an epoch, whose validation is still "
                    "to come; leave every_steps at 0",
                    options.file_name));
  }
  if (options.keep_every_steps > 0 || options.max_bytes > 0) {
    throw Error(
        ErrorCode::invalid_argument,
        "ModelCheckpoint deletes no files that have a file_name of their own; leave keep_every_steps and max_bytes "
        "at 0");
  }
  return pattern;
}

void log_saved(const std::string& path) {
  log(LogLevel::info, fmt::format("ModelCheckpoint: saved {}", path));
}

}  // namespace

ModelCheckpoint::ModelCheckpoint(ModelCheckpointOptions options) : options_(std::move(options)) {
  // Checked at construction, where the mistake is, and not at the first savepoint.
  const auto is_negative = [](std::int64_t number) { return number < 0; };
  if (is_negative(options_.every_steps) || is_negative(options_.every_epochs) || is_negative(options_.keep_last) ||
      is_negative(options_.keep_best) || is_negative(options_.keep_every_steps) || is_negative(options_.threads)) {
    throw Error(ErrorCode::invalid_argument,
                "ModelCheckpoint needs numbers of at least 0 for steps, epochs, threads and savepoints to keep");
  }
  if (options_.initial_value_threshold && options_.best_by.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "ModelCheckpoint has an initial_value_threshold and nothing to compare with it: set best_by");
  }
  if (!options_.file_name.empty()) file_name_ = checked_file_name(options_);
}

std::string ModelCheckpoint::name() const {
  const std::string name = "model_checkpoint/" + options_.directory;
  return file_name_ ? name + "/" + options_.file_name : name;
}

// fit() looks for these names before its first step. One that no log has would else be found after an epoch.
std::vector<std::string> ModelCheckpoint::monitors() const {
  std::vector<std::string> names = file_name_ ? file_name_->logged_names() : std::vector<std::string>{};
  if (!options_.best_by.empty()) names.push_back(options_.best_by);
  return names;
}

std::vector<std::string> ModelCheckpoint::compares() const {
  if (options_.best_by.empty() || options_.best != Best::automatic) return {};
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
void ModelCheckpoint::on_fit_begin(TrainingContext& context) {
  keep_ = nullptr;
  // A process that starts later does not see an earlier fit(), so its values must not count in this one.
  best_values_.clear();
  if (options_.weights_only && !file_name_ && directory(context) == context.run_directory()) {
    throw Error(
        ErrorCode::invalid_argument,
        "ModelCheckpoint would write weights alone as savepoints of the run directory, from which the run could "
        "not go on; give it a directory of its own or a file_name");
  }
}

void ModelCheckpoint::on_step_end(TrainingContext& context, const Logs& logs) {
  if (options_.every_steps == 0 || context.step() % options_.every_steps != 0) return;
  if (file_name_) return save_named(context, logs, options_.when_storage_is_slow);
  save(context, options_.when_storage_is_slow);
}

void ModelCheckpoint::on_epoch_end(TrainingContext& context, const Logs& logs) {
  const std::optional<double> value =
      options_.best_by.empty() ? std::nullopt : monitored_in_epoch(context, logs, options_.best_by, name());
  const bool is_among_best =
      value && enter_best(*value, direction_of(context, options_.best, options_.best_by, name()));
  const bool is_due = options_.every_epochs > 0 && (context.epoch() + 1) % options_.every_epochs == 0;
  if (!is_among_best && !is_due) return;
  // No later savepoint makes up for one among the best, so it is never skipped.
  const WhenStorageIsSlow when_slow = is_among_best ? WhenStorageIsSlow::wait : options_.when_storage_is_slow;
  if (file_name_) return save_named(context, logs, when_slow);
  save(context, when_slow);
}

// Returns whether `value` is among the best so far, and remembers it.
bool ModelCheckpoint::enter_best(double value, Best best) {
  // A NaN is neither better nor worse than anything, and would find a place among the best.
  if (std::isnan(value)) return false;
  const std::optional<double> threshold = options_.initial_value_threshold;
  if (threshold && !is_better(value, *threshold, best, 0)) return false;
  const auto place = std::find_if(best_values_.begin(), best_values_.end(),
                                  [&](double better) { return is_better(value, better, best, 0); });
  if (place - best_values_.begin() >= options_.keep_best) return false;
  // Before the first worse value: an equal one that is older keeps its place.
  best_values_.insert(place, value);
  if (static_cast<std::int64_t>(best_values_.size()) > options_.keep_best) best_values_.pop_back();
  return true;
}

void ModelCheckpoint::on_fit_end(TrainingContext& context, const Logs&) {
  if (!file_name_) save(context, WhenStorageIsSlow::wait);
}

void ModelCheckpoint::on_fit_extended(std::int64_t step, std::int64_t epoch, const Logs& logs) {
  if (file_name_) return;
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

SaveOptions ModelCheckpoint::save_options(const TrainingContext& context,
                                          WhenStorageIsSlow when_storage_is_slow) const {
  return {.when_storage_is_slow = when_storage_is_slow,
          .compression = options_.compression,
          .zstd_level = options_.zstd_level,
          .threads = options_.threads > 0 ? options_.threads : context.saving_threads(),
          .weights_only = options_.weights_only};
}

// A repeated epoch has the same logs, so it writes the same file again.
void ModelCheckpoint::save_named(TrainingContext& context, const Logs& logs, WhenStorageIsSlow when_storage_is_slow) {
  if (!context.writes_files()) return;
  const bool has_name =
      std::ranges::all_of(file_name_->logged_names(), [&](const std::string& name) { return logs.contains(name); });
  // An epoch that validation_every leaves out has no value to be named by.
  if (!has_name && !context.is_validated()) return;
  const std::string folder = directory(context);
  if (context.writes_savepoints()) context.file_system().create_folders(folder);
  const std::string path = fmt::format("{}/{}", folder, file_name_->at(context, logs));
  SaveOptions saving = save_options(context, when_storage_is_slow);
  if (options_.verbose) saving.when_durable = [path] { log_saved(path); };
  context.save(path, saving);
}

void ModelCheckpoint::save(TrainingContext& context, WhenStorageIsSlow when_storage_is_slow) {
  if (!context.writes_files()) return;
  SaveOptions saving =
      save_options(context, is_kept_always(context.step()) ? WhenStorageIsSlow::wait : when_storage_is_slow);
  const std::string folder = directory(context);
  // `keep_` is needed, and when_durable called, only on ranks that write. All others ask for the same savepoint, since
  // all have to decide alike.
  if (context.writes_savepoints() && !keep_) {
    context.file_system().create_folders(folder);
    const bool serves_recovery = folder == context.run_directory();
    ModelCheckpointOptions options = options_;
    options.threads = saving.threads;
    if (!options.best_by.empty()) options.best = direction_of(context, options.best, options.best_by, name());
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
  saving.when_durable = [keep = keep_, drop, saved, folder, verbose = options_.verbose] {
    if (verbose) log_saved(fmt::format("{}/{}", folder, saved));
    drop();
    keep(saved);
  };
  context.save(folder + "/" + saved, saving);
}

}  // namespace holdfast
