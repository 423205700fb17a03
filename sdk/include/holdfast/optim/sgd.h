#pragma once

// Stochastic gradient descent for parameter w, gradient g and learning rate lr (formulas of
// keras.optimizers.SGD):
//
//   momentum 0:         w -= lr g
//   momentum m:         v = m v - lr g,  w += v
//   Nesterov momentum:  v = m v - lr g,  w += m v - lr g
//
// As in Keras, v contains the learning rate. In PyTorch it does not, so the two differ after a change of the rate.
// Without momentum there is no slot, so there is nothing of it to mirror and to save.
//
//   SGD{{.learning_rate = 0.1F, .momentum = 0.9F, .nesterov = true}}

#include <cstdint>
#include <optional>

#include "holdfast/optim/learning_rate.h"
#include "holdfast/optim/optimizer.h"

namespace holdfast {

// The ranges are checked by the constructor of SGD. A savepoint records all options, and a run refuses to resume with
// other ones (Optimizer::configuration()).
struct SGDOptions {
  LearningRate learning_rate = 0.01F;  // not negative
  float momentum = 0;                  // in [0, 1]
  bool nesterov = false;               // without effect if momentum is 0
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

class SGD : public Optimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit SGD(const SGDOptions& options = {});
  explicit SGD(const LearningRate& learning_rate) : SGD(SGDOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "sgd"; }
  // What Optimizer promises, with the formulas above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<SGD>(*this); }
  std::optional<LearningRate> learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const override;
  GradientClipping clipping() const override;
  ParameterRules parameter_rules() const override;
  WeightAverage weight_average() const override;
  std::unique_ptr<Optimizer> with_weight_decay_times(float factor) const override;
  // "momentum"; no slot if the momentum is 0.
  std::vector<std::string> slot_names() const override;
  // One pass over memory for the slot and the parameters.
  void update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots) const override;
  std::shared_ptr<const UpdatePass> pass(std::int64_t step) const override;

 private:
  class Decaying;

  SGDOptions options_;
  std::shared_ptr<const Decaying> decaying_;  // if there is weight decay
};

}  // namespace holdfast
