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

#include "holdfast/base/best.h"
#include "holdfast/train/callback.h"

namespace holdfast {

// When savepoints are written, and which ones stay. A savepoint stays if keep_last, keep_best or
// keep_every_steps asks for it.
struct ModelCheckpointOptions {
  std::string directory{};        // default: the run directory
  std::int64_t every_steps = 0;   // write one each time so many steps are done; 0: never
  std::int64_t every_epochs = 1;  // write one each time so many epochs are done; 0: never
  std::int64_t keep_last = 3;     // keep so many of the newest; 0 keeps all
  // A name in the logs of an epoch, such as "val_loss". An epoch among the best is always saved. If the
  // name is missing, fit() throws Error{invalid_argument} with the names that exist.
  std::string best_by{};
  // Which values of `best_by` are better. By default, what the metric says of itself: the lowest loss, the highest
  // accuracy. fit() throws Error{invalid_argument} for a metric that says nothing: name one of the two then.
  Best best = Best::automatic;
  std::int64_t keep_best = 1;         // keep so many of the best by `best_by`; of equal ones the older
  std::int64_t keep_every_steps = 0;  // keep for good each one whose step is a multiple; 0: none
  // Limits the total size of the savepoints that stay. The oldest go first, but never the newest, the
  // best or one that is kept for good. 0: no limit.
  std::uint64_t max_bytes = 0;

  // Names files as Keras does, from {epoch} and {batch} (from 1), {step}, and names in the logs, each with a
  // format of numbers. A file is written when every_steps or every_epochs says so, or an epoch is among the
  // best by best_by; with every_epochs = 0 only then. fit() adds none at its end. All files stay, and one of
  // the same name is replaced: what keeps or deletes savepoints does not apply. After a failure, repeated
  // epochs write the same files again. Empty: "savepoint-<step>.h5".
  std::string file_name{};
  // Writes parameters and buffers alone, for load_model() and Trainer::load_weights(). Needs a directory of
  // its own or a file_name, since no run can go on from such a file. In a fit() with SwapEMAWeights these are the
  // moving averages, of which the validation is.
  bool weights_only = false;
  // An epoch is among the best only if `best_by` is also better than this.
  std::optional<double> initial_value_threshold{};

  // `skip` applies to savepoints for which the next one makes up. The last one of a fit(), one among
  // the best and one that is kept for good are always waited for.
  WhenStorageIsSlow when_storage_is_slow = WhenStorageIsSlow::wait;
  // With `automatic`, equal states may make different files on different machines; compare digests of
  // the state, not of files.
  SavepointCompression compression = SavepointCompression::fast;
  int zstd_level = 1;  // for SavepointCompression::zstd
  int threads = 0;     // to compress, write and read back; 0: this replica's share of the cores of the host
  // Whether each file is logged once it is on stable storage, at level info, by the replica that has written it. The
  // journal of the run names them anyway.
  bool verbose = false;
};

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
