#pragma once

// Adamax (Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, section 7.1; so
// keras.optimizers.Adamax, which adds epsilon). At step t with parameter w, gradient g and learning rate lr:
//
//   m += (g - m) (1 - beta_1)
//   u = max(beta_2 u, |g|)
//   w -= m lr / (1 - beta_1^t) / (u + epsilon)
//
// Only m is corrected for its beginning at 0: u is a maximum, and needs no correction. PyTorch adds epsilon to |g|
// within the maximum instead.
//
//   Adamax{{.learning_rate = 2e-3F}}

#include <cstdint>
#include <optional>

#include "holdfast/optim/described_optimizer.h"
#include "holdfast/optim/learning_rate.h"

namespace holdfast {

// The ranges are checked by the constructor of Adamax. A savepoint records all options, and a run refuses to resume
// with other ones (Optimizer::configuration()).
struct AdamaxOptions {
  LearningRate learning_rate = 1e-3F;  // not negative
  // Decay of the running mean of gradients, and of the largest of them:
  float beta_1 = 0.9F;    // in [0, 1)
  float beta_2 = 0.999F;  // in [0, 1)
  float epsilon = 1e-7F;  // positive
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

class Adamax : public DescribedOptimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit Adamax(const AdamaxOptions& options = {});
  explicit Adamax(const LearningRate& learning_rate) : Adamax(AdamaxOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "adamax"; }
  // What Optimizer promises, with the formulas above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<Adamax>(*this); }
  std::optional<LearningRate> learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const override;
  GradientClipping clipping() const override;
  ParameterRules parameter_rules() const override;
  WeightAverage weight_average() const override;
  std::unique_ptr<Optimizer> with_weight_decay_times(float factor) const override;
  // "momentum" (m) and "norm" (u).
  std::vector<std::string> slot_names() const override;

 protected:
  std::vector<double> numbers(std::int64_t step) const override;
  Updated describe(const Elements& of) const override;

 private:
  AdamaxOptions options_;
};

}  // namespace holdfast
