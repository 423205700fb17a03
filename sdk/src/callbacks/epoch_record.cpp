// Files that grow with each epoch. They are written by rank 0, and rank 0 may be another process after each recovery.

#include "holdfast/observe/epoch_record.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/base/log.h"

namespace holdfast {

void EpochRecord::on_fit_begin(TrainingContext& context) {
  written_epochs_.reset();
  if (!writes(context)) return;
  // Here a failure ends fit(): a path that cannot be written is best found before training.
  write(context, context.history());
  written_epochs_ = context.history().size();
}

// No event reports a recovery, after which this rank may be the one that writes, or the history may
// be shorter. So both are looked at in each step.
void EpochRecord::on_step_end(TrainingContext& context, const Logs&) {
  if (!writes(context)) return written_epochs_.reset();
  if (written_epochs_ != context.history().size()) try_to_write(context, context.history());
}

void EpochRecord::on_epoch_end(TrainingContext& context, const Logs& logs) {
  if (!writes(context)) return written_epochs_.reset();
  std::vector<Logs> epochs = context.history();
  epochs.push_back(logs);
  try_to_write(context, epochs);
}

void EpochRecord::on_fit_end(TrainingContext& context, const Logs&) {
  if (!writes(context)) return;
  try_to_write(context, context.history());
  finish(context);
}

void EpochRecord::try_to_write(const TrainingContext& context, const std::vector<Logs>& epochs) {
  // Counts as written even if it fails: otherwise it would fail again at each step.
  written_epochs_ = epochs.size();
  try {
    write(context, epochs);
  } catch (const Error& failure) {
    log(LogLevel::error,
        fmt::format("{} cannot write its record of the epochs; training continues, and the next epoch tries again: {}",
                    name(), failure.what()));
  }
}

std::string path_in_run(const TrainingContext& context, const std::string& path, const std::string& name,
                        const std::string& callback) {
  if (!path.empty()) return path;
  if (context.run_directory().empty()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} needs a path: this program runs without supervise(), so there is no run directory", callback));
  }
  return context.run_directory() + "/" + name;
}

}  // namespace holdfast
