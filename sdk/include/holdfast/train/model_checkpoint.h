#pragma once

// Writes savepoints "savepoint-<step>.h5" during training and deletes older ones:
//
//   ModelCheckpoint{{.every_steps = 1000, .keep_last = 3, .best_by = "val_loss"}}
//
// Only savepoints in the run directory serve recovery and are copied to
// SuperviseOptions::savepoint_copies. With a directory of its own, a ModelCheckpoint exports. The end
// of fit() always writes a savepoint. Each savepoint is read back and verified before an older one is
// deleted.
//
// With names of your own, files are exports as well, and all of them stay:
//
//   ModelCheckpoint{{.directory = "weights", .best_by = "val_loss", .file_name = "{epoch:02d}-{val_loss:.2f}.h5",
//                    .weights_only = true}}
//
// Savepoints are written in the background. If the storage is slower than savepoints are due,
// `when_storage_is_slow` decides what gives way; Callback::on_savepoint() and the journal of the run
// report it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/train/callback.h"
#include "holdfast/train/model_checkpoint_options.h"

namespace holdfast {

class FileNamePattern;

class ModelCheckpoint final : public Callback {
 public:
  // Throws Error{invalid_argument} for negative numbers (only zstd_level may be negative), for a file_name
  // that is not such a pattern, that has "val_..." where every_steps writes files, or that stands with
  // keep_every_steps or max_bytes, and for a threshold without best_by.
  explicit ModelCheckpoint(ModelCheckpointOptions options = {});

  std::string name() const override;
  std::vector<std::string> monitors() const override;
  std::vector<std::string> compares() const override;
  CallbackState state() const override;
  void restore(const CallbackState& state) override;
  void on_fit_begin(TrainingContext& context) override;
  void on_step_end(TrainingContext& context, const Logs& logs) override;
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;
  void on_fit_end(TrainingContext& context, const Logs& logs) override;
  void on_fit_extended(std::int64_t step, std::int64_t epoch, const Logs& logs) override;

 private:
  std::string directory(const TrainingContext& context) const;
  bool enter_best(double value, Best best);
  bool is_kept_always(std::int64_t step) const;
  SaveOptions save_options(const TrainingContext& context, WhenStorageIsSlow when_storage_is_slow) const;
  void save(TrainingContext& context, WhenStorageIsSlow when_storage_is_slow);
  void save_named(TrainingContext& context, const Logs& logs, WhenStorageIsSlow when_storage_is_slow);

  ModelCheckpointOptions options_;
  std::shared_ptr<const FileNamePattern> file_name_;  // null without a file_name
  std::vector<double> best_values_;                   // of up to keep_best epochs, best first
  // The step of a savepoint that was made only because fit() ended there, if fit() has trained on
  // since. It is deleted once the next one is whole. -1: none.
  std::int64_t superseded_step_ = -1;
  // Deletes what need not stay. Made with the first savepoint, called on the writer thread.
  std::function<void(const std::string& name)> keep_;
};

// The path of the savepoint in `folder` whose epoch had the best mean `name` ("val_loss"); of equal
// ones, the older. It considers what a ModelCheckpoint with that `best_by` keeps, and all other
// savepoints written at the end of an epoch. Pass the path to load_model(). A damaged savepoint is
// passed over, which is logged. Best::automatic goes by the name: the lowest loss or error, the highest accuracy, AUC
// or other well-known score. Throws Error{not_found} if no savepoint has such a mean, and Error{invalid_argument} for a
// name that says nothing.
std::string best_savepoint(const std::string& folder, const std::string& name, Best best = Best::automatic);

}  // namespace holdfast
