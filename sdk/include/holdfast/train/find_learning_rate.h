#pragma once

// Tries learning rates: a copy of the model is trained for some steps, each with a higher rate than the one before
// (Smith: "Cyclical Learning Rates for Training Neural Networks", 2017). Where the loss falls fastest, the rate is
// high and not yet too high.
//
//   const LearningRateCurve curve = find_learning_rate(model, Adam{}, MeanSquaredError{}, train.shuffle().batch(64));
//   for (const TriedRate& tried : curve.tried) std::printf("%g %g\n", tried.rate, tried.smoothed_loss);
//   Trainer trainer(replica, model, Adam{curve.suggested.value_or(1e-3F)}, MeanSquaredError{});

#include <cstdint>
#include <optional>
#include <vector>

#include "holdfast/data/dataset.h"
#include "holdfast/nn/loss.h"
#include "holdfast/nn/model.h"
#include "holdfast/optim/optimizer.h"
#include "holdfast/train/output_losses.h"

namespace holdfast {

// Which rates are tried, and when that ends.
struct FindLearningRateOptions {
  // The first rate and the last one. Those between grow by one factor from step to step.
  float lowest = 1e-7F;
  float highest = 10;        // the last rate
  std::int64_t steps = 100;  // from the first rate to the last
  // The part that the mean before keeps of the smoothed loss: m = s m + (1 - s) loss, divided by 1 - s^step. 0: none.
  double smoothing = 0.9;
  // Ends when the smoothed loss is above so many times the lowest one so far, or is not finite.
  double explodes_at = 4;
  // Draws the weights of a model that has none, and all that a step draws.
  std::uint64_t seed = 0;
  int shards = 1;  // of each batch, as in a run; this process computes all of them
};

// A step of the trial.
struct TriedRate {
  float rate = 0;            // of its update
  double loss = 0;           // of its batch, before the update
  double smoothed_loss = 0;  // over the steps so far
};

// What find_learning_rate() returns.
struct LearningRateCurve {
  std::vector<TriedRate> tried;  // in the order of the steps
  // The rate at which the smoothed loss falls fastest over the logarithm of the rate, before it is lowest. Empty if it
  // never falls.
  std::optional<float> suggested;
  bool has_exploded = false;  // before all steps were made
};

// Trains a copy of the model with a copy of the optimizer, on the CPU. `model`, its weights, and any Trainer of it stay
// as they are to the last bit. `data` is batched; a pass that ends is followed by the next one. The same arguments give
// the same curve, so each replica of a run may call it and gets the same rate. A schedule of the optimizer is left out.
//
// In a supervised run, call it before the first call of the Trainer: there it is part of the start, as reading data is.
// A run that starts again tries again and finds the same, unless `model` was trained meanwhile.
//
// Throws Error{invalid_argument} unless 0 < lowest < highest, steps is at least 2, 0 <= smoothing < 1 and explodes_at >
// 1, and for data and losses as Trainer does; Error{unsupported} for an optimizer without with_learning_rate().
LearningRateCurve find_learning_rate(const Model& model, const Optimizer& optimizer, const Loss& loss,
                                     const Dataset& data, const FindLearningRateOptions& options = {});
// The same for a model with several outputs: one loss for each, in their order.
LearningRateCurve find_learning_rate(const Model& model, const Optimizer& optimizer,
                                     const std::vector<LossHandle>& losses, const Dataset& data,
                                     const FindLearningRateOptions& options = {});

}  // namespace holdfast
