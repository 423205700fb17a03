#include "holdfast/train/model_checkpoint.h"

#include "holdfast/base/error.h"
#include "holdfast/base/file_system.h"
#include "train/callbacks/monitor.h"
#include "train/resume.h"

namespace holdfast {
namespace {

// Only behind a newer savepoint that is durable, so that there is always one to go back to.
void delete_all_but_last(const std::string& directory, std::int64_t keep) {
  FileSystem& files = posix_file_system();
  const std::vector<std::string> names = list_savepoints(files, directory);
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < names.size(); ++i)
    files.remove(directory + "/" + names[i]);
}

}  // namespace

ModelCheckpoint::ModelCheckpoint(ModelCheckpointOptions options) : options_(std::move(options)) {
  if (options_.every_steps < 0 || options_.every_epochs < 0 || options_.keep_last < 0) {
    throw Error(ErrorCode::invalid_argument,
                "ModelCheckpoint takes no negative numbers of steps, epochs or savepoints to keep");
  }
}

std::string ModelCheckpoint::name() const {
  return "model_checkpoint/" + options_.directory;
}

CallbackState ModelCheckpoint::state() const {
  if (!has_best_) return {};
  return {{"best_value", best_value_}};
}

void ModelCheckpoint::restore(const CallbackState& state) {
  has_best_ = state.contains("best_value");
  if (has_best_) best_value_ = std::get<double>(state.at("best_value"));
}

void ModelCheckpoint::on_step_end(TrainingContext& context, const Logs&) {
  if (options_.every_steps > 0 && context.step() % options_.every_steps == 0) save(context);
}

void ModelCheckpoint::on_epoch_end(TrainingContext& context, const Logs& logs) {
  if (!options_.best_by.empty()) {
    const double value = monitored(logs, options_.best_by, name());
    if (!has_best_ || is_better(value, best_value_, options_.best, 0)) {
      has_best_ = true;
      best_value_ = value;
      context.save(directory(context) + "/best-" + options_.best_by + ".h5", {});
    }
  }
  if (options_.every_epochs > 0 && (context.epoch() + 1) % options_.every_epochs == 0) save(context);
}

void ModelCheckpoint::on_fit_end(TrainingContext& context, const Logs&) {
  save(context);
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

void ModelCheckpoint::save(TrainingContext& context) const {
  const std::string folder = directory(context);
  if (context.is_primary()) posix_file_system().create_folders(folder);
  context.save(folder + "/" + savepoint_name(context.step()), [folder, keep = options_.keep_last] {
    if (keep > 0) delete_all_but_last(folder, keep);
  });
}

}  // namespace holdfast
