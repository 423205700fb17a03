#pragma once

// Lowers the learning rate when a mean has not improved for some epochs (keras.callbacks.ReduceLROnPlateau):
//
//   trainer.fit(data, {.epochs = 100,
//                      .validation = test.batch(256),
//                      .callbacks = {ReduceLROnPlateau{{.monitor = "val_loss", .factor = 0.5, .patience = 3}}}});
//
// The rate, the best value and the counts are part of the training state and survive a restart. The
// optimizer needs a learning rate that is a number, and no schedule. Epochs that are not validated
// (FitOptions::validation_every) do not count where the mean is one of validation data. Counts are those of Keras.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/base/best.h"
#include "holdfast/train/callback.h"

namespace holdfast {

// An epoch improves if its value is better than the best so far by more than min_delta. NaN never does.
struct ReduceLROnPlateauOptions {
  // A name in the logs of an epoch. If it is missing, fit() throws Error{invalid_argument} with the
  // names that exist.
  std::string monitor = "val_loss";
  double factor = 0.1;         // in [0, 1): the new rate is the old one times this
  std::int64_t patience = 10;  // epochs in a row without improvement after which the rate falls; positive
  // Whether a lower or a higher value is better. By default, what the metric says of itself: a loss falls, an
  // accuracy rises. fit() throws Error{invalid_argument} for a metric that says nothing: name one of the two then.
  Best best = Best::automatic;
  double min_delta = 1e-4;         // not negative
  std::int64_t cooldown = 0;       // epochs after a fall in which none are counted; not negative
  float min_learning_rate = 0.0F;  // the rate never falls below; not negative
  bool verbose = true;             // whether the primary rank logs each fall, at level info
};

class ReduceLROnPlateau final : public Callback {
 public:
  // Throws Error{invalid_argument} for an option out of its range.
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {});

  std::string name() const override { return "reduce_lr_on_plateau/" + options_.monitor; }
  std::vector<std::string> monitors() const override { return {options_.monitor}; }
  std::vector<std::string> compares() const override;
  // The best value, the epochs since, and what is left of the cooldown.
  CallbackState state() const override;
  void restore(const CallbackState& state) override;
  // Each fit() starts with a fresh memory, and with the rate that the last one ended with.
  void on_fit_begin(TrainingContext& context) override;
  // Throws what TrainingContext::set_learning_rate() throws.
  void on_epoch_end(TrainingContext& context, const Logs& logs) override;

 private:
  void lower(TrainingContext& context);

  ReduceLROnPlateauOptions options_;
  bool has_best_ = false;
  double best_value_ = 0;
  std::int64_t epochs_without_improvement_ = 0;
  std::int64_t cooldown_left_ = 0;
};

}  // namespace holdfast
