#pragma once

// Ends fit() when a mean has not improved for some epochs:
//
//   trainer.fit(data, {.epochs = 100,
//                      .validation = test.batch(256),
//                      .callbacks = {EarlyStopping{{.monitor = "val_loss", .patience = 3}}}});
//
// Its memory is part of the training state and survives a restart. With restore_best_weights the model
// ends with the weights of its best epoch, also if fit() ends by its number of epochs:
//
//   EarlyStopping{{.patience = 3, .restore_best_weights = true}}

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
  // Whether a lower or a higher value is better. By default, what the metric says of itself: a loss falls, an
  // accuracy rises. fit() throws Error{invalid_argument} for a metric that says nothing: name one of the two then.
  Best best = Best::automatic;
  double min_delta = 0;  // not negative
  // Ends fit() after so many epochs in a row without improvement, as in Keras; 0 and 1 both after one,
  // which is never the first of a fit(). Not negative.
  std::int64_t patience = 0;
  // The count begins anew only after epochs that are also better than this.
  std::optional<double> baseline{};
  std::int64_t start_from_epoch = 0;  // epochs before this one, from 0, are not looked at; not negative
  // Ends fit() with the weights of the best epoch, whatever the baseline is. The optimizer's slots stay those
  // of the last epoch. The training state holds a second copy of the weights meanwhile: on the device, in
  // savepoints, and until another call changes the weights. If fit() gets more epochs later, it goes on with
  // the weights of its last epoch.
  bool restore_best_weights = false;
  bool verbose = true;  // whether the primary rank logs why fit() ends, at level info
};

class EarlyStopping final : public Callback {
 public:
  // Throws Error{invalid_argument} for a negative min_delta, patience or start_from_epoch.
  explicit EarlyStopping(EarlyStoppingOptions options = {});

  std::string name() const override { return "early_stopping/" + options_.monitor; }
  std::vector<std::string> monitors() const override { return {options_.monitor}; }
  std::vector<std::string> compares() const override;
  bool keeps_weights() const override { return options_.restore_best_weights; }
  // The best value and the number of epochs since.
  CallbackState state() const override;
  void restore(const CallbackState& state) override;
  // Each fit() starts with a fresh memory.
  void on_fit_begin(TrainingContext& context) override;
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;
  void on_fit_end(TrainingContext& context, const Logs& logs) override;

 private:
  EarlyStoppingOptions options_;
  bool has_best_ = false;
  // The best value of this fit() so far, if there is one.
  double best_value_ = 0;
  std::int64_t epochs_without_improvement_ = 0;
};

}  // namespace holdfast
