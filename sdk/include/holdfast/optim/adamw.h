#pragma once

// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled Weight Decay Regularization",
// ICLR 2019, algorithm 2 without its schedule; so keras.optimizers.AdamW). Before each step of Adam
// (see adam.h)
//
//   w -= w weight_decay lr
//
// for all parameters, including biases and those of normalization layers. exclude_from_weight_decay spares some.
//
//   AdamW{{.learning_rate = CosineDecay{1e-3F, 10'000}, .weight_decay = 0.01F}}

#include <cstdint>
#include <optional>

#include "holdfast/optim/learning_rate.h"
#include "holdfast/optim/optimizer.h"

namespace holdfast {

// The ranges are checked by the constructor of AdamW. A savepoint records all options, and a run refuses to resume with
// other ones (Optimizer::configuration()).
struct AdamWOptions {
  LearningRate learning_rate = 1e-3F;  // not negative
  // With 0 it is Adam; a search over decays may include it.
  float weight_decay = 4e-3F;  // not negative
  // Decay of the running mean of gradients, and of the running mean of their squares:
  float beta_1 = 0.9F;    // in [0, 1)
  float beta_2 = 0.999F;  // in [0, 1)
  // Added to the root, so that no update is divided by zero:
  float epsilon = 1e-7F;  // positive
  // Divides by the largest v so far (Reddi et al., "On the Convergence of Adam and Beyond", ICLR 2018, algorithm 2),
  // which a third slot keeps:  v_hat = max(v_hat, v)  takes the place of v in the formula of w.
  bool amsgrad = false;
  // Gradient clipping, before slots see the gradient: of each element, of each array, of all arrays together. At most
  // one of these. See gradient_clipping.h.
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

class AdamW : public Optimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit AdamW(const AdamWOptions& options = {});
  explicit AdamW(const LearningRate& learning_rate) : AdamW(AdamWOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "adamw"; }
  // What Optimizer promises, with the formula above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<AdamW>(*this); }
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

  AdamWOptions options_;
  std::shared_ptr<const UpdatePass> amsgrad_;  // the pass with amsgrad, whose numbers each step fills in; else null
};

}  // namespace holdfast
