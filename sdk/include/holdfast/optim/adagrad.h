#pragma once

// Adagrad (Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization",
// JMLR 12, 2011, section 1.1 with a diagonal matrix; so keras.optimizers.Adagrad). With parameter w, gradient g and
// learning rate lr:
//
//   s += g^2
//   w -= lr g / sqrt(s + epsilon)
//
// s begins with initial_accumulator_value, and only grows. So the steps of an element that has many gradients become
// small, and those of a rare one stay large.
//
//   Adagrad{{.learning_rate = 0.01F}}

#include <cstdint>
#include <optional>

#include "holdfast/optim/described_optimizer.h"
#include "holdfast/optim/learning_rate.h"

namespace holdfast {

// The ranges are checked by the constructor of Adagrad. A savepoint records all options, and a run refuses to resume
// with other ones (Optimizer::configuration()).
struct AdagradOptions {
  LearningRate learning_rate = 1e-3F;      // not negative
  float initial_accumulator_value = 0.1F;  // not negative
  float epsilon = 1e-7F;                   // positive
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

class Adagrad : public DescribedOptimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit Adagrad(const AdagradOptions& options = {});
  explicit Adagrad(const LearningRate& learning_rate) : Adagrad(AdagradOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "adagrad"; }
  // What Optimizer promises, with the formulas above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<Adagrad>(*this); }
  std::optional<LearningRate> learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const override;
  GradientClipping clipping() const override;
  ParameterRules parameter_rules() const override;
  WeightAverage weight_average() const override;
  std::unique_ptr<Optimizer> with_weight_decay_times(float factor) const override;
  // "accumulator" (s).
  std::vector<std::string> slot_names() const override;
  float initial_value_of_slot(std::size_t) const override { return options_.initial_accumulator_value; }

 protected:
  std::vector<double> numbers(std::int64_t step) const override;
  Updated describe(const Elements& of) const override;

 private:
  AdagradOptions options_;
};

}  // namespace holdfast
