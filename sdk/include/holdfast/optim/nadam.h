#pragma once

// Nadam (Dozat, "Incorporating Nesterov Momentum into Adam", ICLR 2016 workshop, algorithm 2, with the schedule of the
// momentum that keras.optimizers.Nadam has). At step t with parameter w, gradient g and learning rate lr:
//
//   u_t = beta_1 (1 - 0.96^t / 2),  p_t = u_1 u_2 ... u_t
//   m += (g - m) (1 - beta_1)
//   v += (g^2 - v) (1 - beta_2)
//   h = u_(t+1) m / (1 - p_(t+1)) + (1 - u_t) g / (1 - p_t)
//   w -= lr h / (sqrt(v / (1 - beta_2^t)) + epsilon)
//
// The products p are computed from t, so they are not part of the state. PyTorch has its momentum_decay as a factor of
// t in the exponent of 0.96.
//
//   Nadam{{.learning_rate = 2e-3F}}

#include <cstdint>
#include <optional>

#include "holdfast/optim/described_optimizer.h"
#include "holdfast/optim/learning_rate.h"

namespace holdfast {

// The ranges are checked by the constructor of Nadam. A savepoint records all options, and a run refuses to resume with
// other ones (Optimizer::configuration()).
struct NadamOptions {
  LearningRate learning_rate = 1e-3F;  // not negative
  float beta_1 = 0.9F;                 // in [0, 1)
  float beta_2 = 0.999F;               // in [0, 1)
  float epsilon = 1e-7F;               // positive
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

class Nadam : public DescribedOptimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit Nadam(const NadamOptions& options = {});
  explicit Nadam(const LearningRate& learning_rate) : Nadam(NadamOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "nadam"; }
  // What Optimizer promises, with the formulas above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<Nadam>(*this); }
  std::optional<LearningRate> learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const override;
  GradientClipping clipping() const override;
  ParameterRules parameter_rules() const override;
  WeightAverage weight_average() const override;
  std::unique_ptr<Optimizer> with_weight_decay_times(float factor) const override;
  // "momentum" (m) and "velocity" (v).
  std::vector<std::string> slot_names() const override;

 protected:
  std::vector<double> numbers(std::int64_t step) const override;
  Updated describe(const Elements& of) const override;

 private:
  NadamOptions options_;
};

}  // namespace holdfast
