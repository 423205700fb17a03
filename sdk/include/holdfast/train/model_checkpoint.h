#pragma once

// Writes savepoints "savepoint-<step>.h5" as training goes on, and lets older ones go. Only savepoints in the run
// directory serve recovery, and are copied to SuperviseOptions::savepoint_copies; with a directory of its own a
// ModelCheckpoint exports. A savepoint is always written at the end of fit().
//
// Each savepoint is read back and found whole before an older one is deleted.
//
// They are written in the background. When the storage is slower than savepoints are due, `when_storage_is_slow` says
// what gives way; Callback::on_savepoint() and the run's journal tell of it.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "holdfast/base/best.h"
#include "holdfast/train/callback.h"

namespace holdfast {

// A savepoint stays when keep_last, keep_best or keep_every_steps asks for it.
struct ModelCheckpointOptions {
  std::string directory{};        // default: the run directory
  std::int64_t every_steps = 0;   // 0: not by steps
  std::int64_t every_epochs = 1;  // 0: not by epochs
  std::int64_t keep_last = 3;     // the newest so many; 0 keeps all
  // A name in the epoch's logs, "val_loss": an epoch among the best is saved always. Where the name is missing, fit()
  // throws Error{invalid_argument} with the names that there are.
  std::string best_by{};
  Best best = Best::lowest;           //
  std::int64_t keep_best = 1;         // so many of the best by `best_by`; of equal ones the older
  std::int64_t keep_every_steps = 0;  // for ever: all whose step is a multiple; 0: none
  // Of all that stay: the oldest go first, but never the newest, the best, or those kept for ever. 0: no limit.
  std::uint64_t max_bytes = 0;

  // `skip` is for those that the next one makes up for. The last of a fit(), one among the best, and one that is kept
  // for ever are waited for in any case.
  WhenStorageIsSlow when_storage_is_slow = WhenStorageIsSlow::wait;
  // With `automatic`, the same state may make different files on different machines: compare digests of the state then,
  // not of files.
  SavepointCompression compression = SavepointCompression::fast;
  int zstd_level = 1;  // of SavepointCompression::zstd
  int threads = 0;     // that compress, write and read back; 0: this replica's share of the host's cores
};

class ModelCheckpoint final : public Callback {
 public:
  // Throws Error{invalid_argument} for negative numbers; zstd_level may be negative.
  explicit ModelCheckpoint(ModelCheckpointOptions options = {});

  std::string name() const override;
  std::vector<std::string> monitors() const override;
  CallbackState state() const override;
  void restore(const CallbackState& state) override;
  void on_step_end(TrainingContext& context, const Logs& logs) override;
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;
  void on_fit_end(TrainingContext& context, const Logs& logs) override;
  void on_fit_extended(std::int64_t step, std::int64_t epoch, const Logs& logs) override;

 private:
  std::string directory(const TrainingContext& context) const;
  bool enter_best(double value);
  bool is_kept_for_ever(std::int64_t step) const;
  void save(TrainingContext& context, WhenStorageIsSlow when_storage_is_slow);

  ModelCheckpointOptions options_;
  std::vector<double> best_values_;  // of up to keep_best epochs, best first
  // The step of a savepoint that was made only because fit() ended there, and fit() has trained on since: it is deleted
  // when the next one is whole. -1: none.
  std::int64_t superseded_step_ = -1;
  std::function<void(const std::string& name)> keep_;  // made with the first savepoint, called on the writer thread
};

// The path of the savepoint in `folder` whose epoch had the best mean `name` ("val_loss"), of equal ones the older: of
// those that a ModelCheckpoint with that `best_by` keeps, or any that were written at an epoch's end. load_model()
// reads it. One that is damaged is passed over, which is logged. Throws Error{not_found} where no savepoint has such a
// mean.
std::string best_savepoint(const std::string& folder, const std::string& name, Best best = Best::lowest);

}  // namespace holdfast
