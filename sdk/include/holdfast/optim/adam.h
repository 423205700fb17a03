#pragma once

// Adam (Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, section 2, in the
// faster form that precedes section 2.1; so keras.optimizers.Adam). At step t with gradient g:
//
//   m += (g - m) (1 - beta_1)
//   v += (g^2 - v) (1 - beta_2)
//   w -= m lr sqrt(1 - beta_2^t) / (1 - beta_1^t) / (sqrt(v) + epsilon)
//
// As in Keras, epsilon is the "epsilon hat" of the paper.
//
//   Trainer trainer(replica, model, Adam{1e-3F}, SparseCategoricalCrossentropy{{.from_logits = true}});

#include <cstdint>
#include <optional>

#include "holdfast/optim/learning_rate.h"
#include "holdfast/optim/optimizer.h"

namespace holdfast {

// The ranges are checked by the constructor of Adam.
struct AdamOptions {
  LearningRate learning_rate = 1e-3F;  // not negative
  // Decay of the running mean of gradients, and of the running mean of their squares:
  float beta_1 = 0.9F;    // in [0, 1)
  float beta_2 = 0.999F;  // in [0, 1)
  // Added to the root, so that no update is divided by zero:
  float epsilon = 1e-7F;  // positive
  // Divides by the largest v so far (Reddi et al., "On the Convergence of Adam and Beyond", ICLR 2018, algorithm 2),
  // which a third slot keeps:  v_hat = max(v_hat, v)  takes the place of v in the formula of w.
  bool amsgrad = false;
  // Before each step, all parameters are multiplied by 1 - lr weight_decay, which makes it AdamW.
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

class Adam : public Optimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit Adam(const AdamOptions& options = {});
  explicit Adam(const LearningRate& learning_rate) : Adam(AdamOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "adam"; }
  // What Optimizer promises, with the formula above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<Adam>(*this); }
  std::optional<LearningRate> learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const override;
  GradientClipping clipping() const override;
  ParameterRules parameter_rules() const override;
  WeightAverage weight_average() const override;
  std::unique_ptr<Optimizer> with_weight_decay_times(float factor) const override;
  // "m" and "v"; with amsgrad also "v_hat".
  std::vector<std::string> slot_names() const override;
  // One pass over memory for all slots and the parameters.
  void update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots) const override;
  std::shared_ptr<const UpdatePass> pass(std::int64_t step) const override;

 private:
  UpdatePass pass_of(std::int64_t step) const;

  AdamOptions options_;
  std::shared_ptr<const UpdatePass> amsgrad_;  // the pass with amsgrad, whose numbers each step fills in; else null
};

}  // namespace holdfast
