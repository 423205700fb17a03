#pragma once

// FTRL-Proximal (McMahan et al., "Ad Click Prediction: a View from the Trenches", KDD 2013, algorithm 1, with the
// powers and the shrinkage that keras.optimizers.Ftrl adds), for shallow models of many sparse features. With parameter
// w, gradient g, learning rate lr, p = -learning_rate_power, and the regularization strengths l1, l2 and s (shrinkage):
//
//   n' = n + g^2
//   z += g + 2 s w - (n'^p - n^p) w / lr
//   q  = n'^p / lr + 2 l2 + beta / lr
//   w  = (clip(z, -l1, l1) - z) / q,  n = n'
//
// So w is 0 where |z| is at most l1. Where q is 0 or lr is 0, w stays as it is; in Keras it becomes NaN. The old w
// enters by z alone, and the shrinkage does not enter n.
//
//   Ftrl{{.learning_rate = 0.05F, .l1_regularization_strength = 1e-3F}}

#include <cstdint>
#include <optional>

#include "holdfast/optim/described_optimizer.h"
#include "holdfast/optim/learning_rate.h"

namespace holdfast {

// The ranges are checked by the constructor of Ftrl. A savepoint records all options, and a run refuses to resume with
// other ones (Optimizer::configuration()).
struct FtrlOptions {
  LearningRate learning_rate = 1e-3F;              // not negative
  float learning_rate_power = -0.5F;               // not positive; 0 for a rate that does not fall
  float initial_accumulator_value = 0.1F;          // not negative: what n begins with
  float l1_regularization_strength = 0;            // not negative
  float l2_regularization_strength = 0;            // not negative
  float l2_shrinkage_regularization_strength = 0;  // not negative
  float beta = 0;                                  // not negative
  // Before each step, all parameters are multiplied by 1 - lr weight_decay, biases too. Since w follows from z and n,
  // the decay acts by the w in the formula of z.
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

class Ftrl : public DescribedOptimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit Ftrl(const FtrlOptions& options = {});
  explicit Ftrl(const LearningRate& learning_rate) : Ftrl(FtrlOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "ftrl"; }
  // What Optimizer promises, with the formulas above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<Ftrl>(*this); }
  std::optional<LearningRate> learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const override;
  GradientClipping clipping() const override;
  ParameterRules parameter_rules() const override;
  WeightAverage weight_average() const override;
  std::unique_ptr<Optimizer> with_weight_decay_times(float factor) const override;
  // "accumulator" (n) and "linear" (z).
  std::vector<std::string> slot_names() const override;
  float initial_value_of_slot(std::size_t slot) const override;

 protected:
  std::vector<double> numbers(std::int64_t step) const override;
  Updated describe(const Elements& of) const override;

 private:
  FtrlOptions options_;
};

}  // namespace holdfast
