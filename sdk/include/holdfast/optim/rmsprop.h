#pragma once

// RMSprop (Tieleman and Hinton, "Lecture 6.5 - rmsprop", COURSERA: Neural Networks for Machine Learning, 2012;
// centered: Graves, "Generating Sequences With Recurrent Neural Networks", 2013, section 4.2; so
// keras.optimizers.RMSprop). With parameter w, gradient g and learning rate lr:
//
//   v = rho v + (1 - rho) g^2
//   d = v + epsilon;   centered:  a = rho a + (1 - rho) g,  d = v - a^2 + epsilon
//   momentum 0:  w -= lr g / sqrt(d);   else:  b = momentum b + lr g / sqrt(d),  w -= b
//
// v - a^2 is a variance. Where rounding makes it negative, it counts as 0; in Keras the root of it is NaN. As in Keras,
// b contains the learning rate, and epsilon is inside the root. Only slots that the options need are kept.
//
//   RMSprop{{.learning_rate = 1e-3F, .momentum = 0.9F, .centered = true}}

#include <cstdint>
#include <optional>

#include "holdfast/optim/described_optimizer.h"
#include "holdfast/optim/learning_rate.h"

namespace holdfast {

// The ranges are checked by the constructor of RMSprop. A savepoint records all options, and a run refuses to resume
// with other ones (Optimizer::configuration()).
struct RMSpropOptions {
  LearningRate learning_rate = 1e-3F;  // not negative
  float rho = 0.9F;                    // in [0, 1): decay of the running means
  float momentum = 0;                  // in [0, 1]
  float epsilon = 1e-7F;               // positive
  bool centered = false;               // divides by the deviation of the gradients, not by their size
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

class RMSprop : public DescribedOptimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit RMSprop(const RMSpropOptions& options = {});
  explicit RMSprop(const LearningRate& learning_rate) : RMSprop(RMSpropOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "rmsprop"; }
  // What Optimizer promises, with the formulas above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<RMSprop>(*this); }
  std::optional<LearningRate> learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const override;
  GradientClipping clipping() const override;
  ParameterRules parameter_rules() const override;
  WeightAverage weight_average() const override;
  std::unique_ptr<Optimizer> with_weight_decay_times(float factor) const override;
  // "velocity" (v); with momentum also "momentum" (b), and if centered also "average_gradient" (a).
  std::vector<std::string> slot_names() const override;

 protected:
  std::vector<double> numbers(std::int64_t step) const override;
  Updated describe(const Elements& of) const override;

 private:
  RMSpropOptions options_;
};

}  // namespace holdfast
