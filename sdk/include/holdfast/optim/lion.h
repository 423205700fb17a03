#pragma once

// Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", NeurIPS 2023, algorithm 2; so
// keras.optimizers.Lion). With parameter w, gradient g and learning rate lr:
//
//   w -= lr sign(beta_1 m + (1 - beta_1) g)
//   m = beta_2 m + (1 - beta_2) g
//
// All steps have one size, so the paper advises a rate three to ten times smaller than Adam's. The one slot is half of
// what Adam keeps. Where the sum in the sign is 0, there is no step.
//
//   Lion{{.learning_rate = 1e-4F, .weight_decay = 0.1F}}

#include <cstdint>
#include <optional>

#include "holdfast/optim/described_optimizer.h"
#include "holdfast/optim/learning_rate.h"

namespace holdfast {

// The ranges are checked by the constructor of Lion. A savepoint records all options, and a run refuses to resume with
// other ones (Optimizer::configuration()).
struct LionOptions {
  LearningRate learning_rate = 1e-3F;  // not negative
  // Weights of the old momentum in the direction of this step, and in the momentum that is kept. Keras refuses a beta_1
  // of 0, too: only the sign of the gradient would be left.
  float beta_1 = 0.9F;   // in (0, 1]
  float beta_2 = 0.99F;  // in [0, 1)
  // Before each step, all parameters are multiplied by 1 - lr weight_decay, biases too. The decay does not enter the
  // gradient, so slots do not see it.
  float weight_decay = 0;  // not negative
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

class Lion : public DescribedOptimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit Lion(const LionOptions& options = {});
  explicit Lion(const LearningRate& learning_rate) : Lion(LionOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "lion"; }
  // What Optimizer promises, with the formulas above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<Lion>(*this); }
  std::optional<LearningRate> learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const override;
  GradientClipping clipping() const override;
  ParameterRules parameter_rules() const override;
  WeightAverage weight_average() const override;
  std::unique_ptr<Optimizer> with_weight_decay_times(float factor) const override;
  // "momentum" (m).
  std::vector<std::string> slot_names() const override;

 protected:
  std::vector<double> numbers(std::int64_t step) const override;
  Updated describe(const Elements& of) const override;

 private:
  LionOptions options_;
};

}  // namespace holdfast
