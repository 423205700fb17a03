#pragma once

// LAMB (You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", ICLR 2020, algorithm 2
// with the identity as phi; so keras.optimizers.Lamb). At step t with parameters w, gradient g and learning rate lr:
//
//   m += (g - m) (1 - beta_1)
//   v += (g^2 - v) (1 - beta_2)
//   u = (m / (1 - beta_1^t)) / (sqrt(v / (1 - beta_2^t)) + epsilon)
//   w -= lr r u,  r = |w| / |u| with the norms over the whole array, or 1 where one of them is 0
//
// As in Keras, weight decay comes before that and is not part of u. Sums of squares are in double, in an order that
// follows from the size of the array, so the bits are the same on any number of replicas and threads. Threads share the
// arrays of a model, and not the elements of an array. On a device, the host computes with copies of the arrays.
//
//   Lamb{{.learning_rate = 2e-3F, .weight_decay = 0.01F}}

#include <cstdint>
#include <optional>

#include "holdfast/optim/learning_rate.h"
#include "holdfast/optim/optimizer.h"

namespace holdfast {

// The ranges are checked by the constructor of Lamb.
struct LambOptions {
  LearningRate learning_rate = 1e-3F;  // not negative
  float beta_1 = 0.9F;                 // in [0, 1)
  float beta_2 = 0.999F;               // in [0, 1)
  float epsilon = 1e-7F;               // positive
  // Before each step, all parameters are multiplied by 1 - lr weight_decay.
  float weight_decay = 0;  // not negative
  // Gradient clipping; at most one of these. See gradient_clipping.h.
  std::optional<float> clip_value{};
  std::optional<float> clip_norm{};
  std::optional<float> global_clip_norm{};
  // Patterns of parameters with other rules. See parameter_rules.h.
  std::vector<std::string> exclude_from_weight_decay{};
  std::vector<LearningRateFactor> learning_rate_factors{};
  std::vector<WeightDecayFactor> weight_decay_factors{};  // see parameter_rules.h
  // A moving average of each parameter. See weight_average.h.
  bool use_ema = false;
  float ema_momentum = 0.99F;                // in [0, 1]
  std::int64_t ema_overwrite_frequency = 0;  // updates from one overwriting to the next; 0: never
};

class Lamb : public Optimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit Lamb(const LambOptions& options = {});
  explicit Lamb(const LearningRate& learning_rate) : Lamb(LambOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "lamb"; }
  // What Optimizer promises, with the formulas above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<Lamb>(*this); }
  std::optional<LearningRate> learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const override;
  GradientClipping clipping() const override;
  ParameterRules parameter_rules() const override;
  WeightAverage weight_average() const override;
  std::unique_ptr<Optimizer> with_weight_decay_times(float factor) const override;
  // "momentum" (m) and "velocity" (v).
  std::vector<std::string> slot_names() const override;
  bool needs_whole_arrays() const override { return true; }
  // The order of the sums: releases before it added squares element by element, which gave other bits.
  std::string arithmetic() const override { return "LAMB's sums in lanes"; }
  void update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots) const override;

 private:
  LambOptions options_;
};

}  // namespace holdfast
