#pragma once

// Adadelta (Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012, algorithm 1; so keras.optimizers.Adadelta,
// which has a learning rate besides). With parameter w, gradient g and learning rate lr:
//
//   s = rho s + (1 - rho) g^2
//   d = g sqrt(e + epsilon) / sqrt(s + epsilon)
//   e = rho e + (1 - rho) d^2
//   w -= lr d
//
// s and e begin with zeros. So the first d is about sqrt(epsilon / (1 - rho)), whatever the size of g. Epsilon is
// inside both roots, as in the paper; in Adam it is outside.
//
//   Adadelta{{.learning_rate = 1}}  // the rate of the paper

#include <cstdint>
#include <optional>

#include "holdfast/optim/described_optimizer.h"
#include "holdfast/optim/learning_rate.h"

namespace holdfast {

// The ranges are checked by the constructor of Adadelta. A savepoint records all options, and a run refuses to resume
// with other ones (Optimizer::configuration()).
struct AdadeltaOptions {
  LearningRate learning_rate = 1e-3F;  // not negative
  float rho = 0.95F;                   // in [0, 1): decay of the running means
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

class Adadelta : public DescribedOptimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit Adadelta(const AdadeltaOptions& options = {});
  explicit Adadelta(const LearningRate& learning_rate) : Adadelta(AdadeltaOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "adadelta"; }
  // What Optimizer promises, with the formulas above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<Adadelta>(*this); }
  std::optional<LearningRate> learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const override;
  GradientClipping clipping() const override;
  ParameterRules parameter_rules() const override;
  WeightAverage weight_average() const override;
  std::unique_ptr<Optimizer> with_weight_decay_times(float factor) const override;
  // "accumulated_grad" (s) and "accumulated_delta_var" (e).
  std::vector<std::string> slot_names() const override;

 protected:
  std::vector<double> numbers(std::int64_t step) const override;
  Updated describe(const Elements& of) const override;

 private:
  AdadeltaOptions options_;
};

}  // namespace holdfast
