#pragma once

// Validates the moving averages of the weights, and leaves them to the model (keras.callbacks.SwapEMAWeights). The
// optimizer must keep them (weight_average.h):
//
//   Trainer trainer(replica, model, Adam{{.use_ema = true}}, MeanSquaredError());
//   trainer.fit(train.batch(256), {.epochs = 10,
//                                  .validation = test.batch(256),
//                                  .callbacks = {SwapEMAWeights(), ModelCheckpoint{{.best_by = "val_loss"}}}});
//   const Model best = load_model(best_savepoint(replica.run_directory(), "val_loss"), Weights::averaged);
//
// "val_loss" and all other means of validation are then those of the averages. When fit() is over, `model` and its
// copies have the averages as their weights, and evaluate() and predict() of the Trainer read them unless they are told
// otherwise (FitResult::weights). Files of weights alone hold the averages, too (ModelCheckpointOptions::weights_only).
//
// Nothing is swapped in the training state: the next step goes on with the trained weights, whatever fails in between.
// So Keras's option swap_on_epoch has no counterpart. Each savepoint holds both, and its reader chooses.

#include "holdfast/train/callback.h"

namespace holdfast {

class SwapEMAWeights final : public Callback {
 public:
  std::string name() const override { return "swap_ema_weights"; }
  bool reads_averages() const override { return true; }
};

}  // namespace holdfast
