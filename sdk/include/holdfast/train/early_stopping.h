#pragma once

// Ends fit() when a mean has not improved for some epochs:
//
//   trainer.fit(data, {.epochs = 100,
//                      .validation = test.batch(256),
//                      .callbacks = {EarlyStopping{{.monitor = "val_loss", .patience = 3}}}});
//
// Its memory is part of the training state and survives a restart. It does not bring back the best
// weights: give ModelCheckpoint the option best_by, and read best_savepoint() after training.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/train/callback.h"
#include "holdfast/train/model_checkpoint.h"

namespace holdfast {

// An epoch improves if its value is better than the best so far by more than min_delta.
struct EarlyStoppingOptions {
  // A name in the logs of an epoch. If it is missing, fit() throws Error{invalid_argument} with the
  // names that exist.
  std::string monitor = "val_loss";
  Best best = Best::lowest;  // whether a lower or a higher value is better
  double min_delta = 0;      // not negative
  // Ends fit() after so many epochs in a row without improvement, as in Keras; 0 and 1 both after one,
  // which is never the first of a fit(). Not negative.
  std::int64_t patience = 0;
  // The count begins anew only after epochs that are also better than this.
  std::optional<double> baseline{};
  std::int64_t start_from_epoch = 0;  // epochs before this one, from 0, are not looked at; not negative
};

class EarlyStopping final : public Callback {
 public:
  // Throws Error{invalid_argument} for a negative min_delta, patience or start_from_epoch.
  explicit EarlyStopping(EarlyStoppingOptions options = {});

  std::string name() const override { return "early_stopping/" + options_.monitor; }
  std::vector<std::string> monitors() const override { return {options_.monitor}; }
  // The best value and the number of epochs since.
  CallbackState state() const override;
  void restore(const CallbackState& state) override;
  // Each fit() starts with a fresh memory.
  void on_fit_begin(TrainingContext& context) override;
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;

 private:
  EarlyStoppingOptions options_;
  bool has_best_ = false;
  // The best value of this fit() so far, if there is one.
  double best_value_ = 0;
  std::int64_t epochs_without_improvement_ = 0;
};

}  // namespace holdfast
