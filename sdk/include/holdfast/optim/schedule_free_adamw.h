#pragma once

// AdamW without a schedule of the learning rate (Defazio et al., "The Road Less Scheduled", NeurIPS 2024, algorithm 1,
// with the averages of equal weights of keras.optimizers.ScheduleFreeAdamW). At step t with parameter y, gradient g and
// learning rate lr, which is multiplied by min(1, t / warmup_steps) if there are warmup_steps:
//
//   v += (g^2 - v) (1 - beta_2)
//   x  = (y - (1 - beta_1) z) / beta_1
//   z -= lr g / (sqrt(v / (1 - beta_2^t)) + epsilon)
//   x  = (1 - 1/t) x + z / t
//   y  = (1 - beta_1) z + beta_1 x
//
// z begins with the parameters, x is the mean of all z, and y lies between both. The division by beta_1 is not carried
// out, so a beta_1 of 0 is fine. As in Keras, the weights of the model are y, in training and afterwards.
//
//   ScheduleFreeAdamW{{.warmup_steps = 1000, .weight_decay = 0.01F}}

#include <cstdint>
#include <optional>

#include "holdfast/optim/described_optimizer.h"
#include "holdfast/optim/learning_rate.h"

namespace holdfast {

// The ranges are checked by the constructor of ScheduleFreeAdamW. A savepoint records all options, and a run refuses to
// resume with other ones (Optimizer::configuration()).
struct ScheduleFreeAdamWOptions {
  LearningRate learning_rate = 2.5e-3F;  // not negative
  // The share of the mean x in y, and the decay of the running mean of squares:
  float beta_1 = 0.9F;            // in [0, 1)
  float beta_2 = 0.999F;          // in [0, 1)
  float epsilon = 1e-8F;          // positive
  std::int64_t warmup_steps = 0;  // not negative: updates until the rate is that of the options
  // Before each step, all parameters are multiplied by 1 - lr weight_decay, with the lr before the warm-up.
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

class ScheduleFreeAdamW : public DescribedOptimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit ScheduleFreeAdamW(const ScheduleFreeAdamWOptions& options = {});
  explicit ScheduleFreeAdamW(const LearningRate& learning_rate)
      : ScheduleFreeAdamW(ScheduleFreeAdamWOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "schedule_free_adamw"; }
  // What Optimizer promises, with the formulas above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<ScheduleFreeAdamW>(*this); }
  std::optional<LearningRate> learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const override;
  GradientClipping clipping() const override;
  ParameterRules parameter_rules() const override;
  WeightAverage weight_average() const override;
  std::unique_ptr<Optimizer> with_weight_decay_times(float factor) const override;
  // "momentum" (z), which is 0 until the first step, and "velocity" (v).
  std::vector<std::string> slot_names() const override;

 protected:
  std::vector<double> numbers(std::int64_t step) const override;
  Updated describe(const Elements& of) const override;

 private:
  ScheduleFreeAdamWOptions options_;
};

}  // namespace holdfast
