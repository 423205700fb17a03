#pragma once

// Writes savepoints as training goes on: "savepoint-<step>.h5", and with `best_by` also "best-<metric>.h5". Only
// savepoints in the run directory serve recovery; with a directory of its own a ModelCheckpoint exports. A savepoint is
// always written at the end of fit().

#include <cstdint>
#include <string>

#include "holdfast/train/callback.h"

namespace holdfast {

enum class Best { lowest, highest };

struct ModelCheckpointOptions {
  std::string directory{};        // default: the run directory
  std::int64_t every_steps = 0;   // 0: not by steps
  std::int64_t every_epochs = 1;  // 0: not by epochs
  std::int64_t keep_last = 3;     // older ones are deleted once a newer one is durable; 0 keeps all
  std::string best_by{};          // a name in the epoch's logs, "val_loss"
  Best best = Best::lowest;
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
  void save(TrainingContext& context) const;

  ModelCheckpointOptions options_;
  bool has_best_ = false;
  double best_value_ = 0;
};

}  // namespace holdfast
