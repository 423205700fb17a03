#pragma once

// Writes savepoints "savepoint-<step>.h5" as training goes on, and lets older ones go. Only savepoints in the run
// directory serve recovery, and are copied to SuperviseOptions::savepoint_copies; with a directory of its own a
// ModelCheckpoint exports. A savepoint is always written at the end of fit().
//
// Each savepoint is read back and found whole before an older one is deleted.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "holdfast/train/callback.h"

namespace holdfast {

enum class Best { lowest, highest };

// A savepoint stays when keep_last, keep_best or keep_every_steps asks for it.
struct ModelCheckpointOptions {
  std::string directory{};            // default: the run directory
  std::int64_t every_steps = 0;       // 0: not by steps
  std::int64_t every_epochs = 1;      // 0: not by epochs
  std::int64_t keep_last = 3;         // the newest so many; 0 keeps all
  std::string best_by{};              // a name in the epoch's logs, "val_loss"; an epoch among the best is saved always
  Best best = Best::lowest;           //
  std::int64_t keep_best = 1;         // so many of the best by `best_by`; of equal ones the older
  std::int64_t keep_every_steps = 0;  // for ever: all whose step is a multiple; 0: none
  // Of all that stay: the oldest go first, but never the newest, the best, or those kept for ever. 0: no limit.
  std::uint64_t max_bytes = 0;
};

class ModelCheckpoint final : public Callback {
 public:
  // Throws Error{invalid_argument} for negative numbers.
  explicit ModelCheckpoint(ModelCheckpointOptions options = {});

  std::string name() const override;
  CallbackState state() const override;
  void restore(const CallbackState& state) override;
  void on_step_end(TrainingContext& context, const Logs& logs) override;
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;
  void on_fit_end(TrainingContext& context, const Logs& logs) override;

 private:
  std::string directory(const TrainingContext& context) const;
  bool enter_best(double value);
  void save(TrainingContext& context);

  ModelCheckpointOptions options_;
  std::vector<double> best_values_;                    // of up to keep_best epochs, best first
  std::function<void(const std::string& name)> keep_;  // made with the first savepoint, called on the writer thread
};

}  // namespace holdfast
