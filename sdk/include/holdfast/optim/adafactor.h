#pragma once

// Adafactor (Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", 2018, algorithms 4 and
// 5; so keras.optimizers.Adafactor). For an array w with gradient g, learning rate lr and update t, where rms(x) is the
// root of the mean of x^2:
//
//   rate  = max(epsilon_2, rms(w)) min(lr, 1 / sqrt(t))
//   b     = 1 - t^beta_2_decay
//   r     = b r + (1 - b) mean over the last axis of (g^2 + epsilon_1)
//   c     = b c + (1 - b) mean over the axis before it of (g^2 + epsilon_1)
//   v     = r c / (mean of r over its last axis)
//   u     = g / sqrt(v)
//   w    -= rate u / max(1, rms(u) / clip_threshold)
//
// An array of fewer than two axes has v = b v + (1 - b) (g^2 + epsilon_1) instead. Keras's option relative_step has no
// influence there, since the rate is never more than 1 / sqrt(t), and is left out here.
//
//   Adafactor{{.learning_rate = 0.01F}}
//
// The steps of an array are computed by one thread, and threads share the arrays of a model, so the bits are the same
// on any number of replicas and threads. On a device, the host computes with copies of the arrays. Slots have the shape
// of the parameters, so r and c are repeated along the axis that they lack: this saves no memory.

#include <cstdint>
#include <memory>
#include <optional>

#include "holdfast/optim/learning_rate.h"
#include "holdfast/optim/optimizer.h"

namespace holdfast {

// The ranges are checked by the constructor of Adafactor.
struct AdafactorOptions {
  LearningRate learning_rate = 1e-3F;  // not negative
  float beta_2_decay = -0.8F;          // negative
  float epsilon_1 = 1e-30F;            // positive; added to squares of gradients
  float epsilon_2 = 1e-3F;             // not negative; the least scale of the parameters
  float clip_threshold = 1;            // positive
  float weight_decay = 0;              // not negative: before each step, w -= w lr weight_decay
  // Gradient clipping; at most one of these. See gradient_clipping.h.
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

class Adafactor : public Optimizer {
 public:
  // Both throw Error{invalid_argument} for an option out of its range.
  explicit Adafactor(const AdafactorOptions& options = {});
  explicit Adafactor(const LearningRate& learning_rate) : Adafactor(AdafactorOptions{.learning_rate = learning_rate}) {}

  std::string name() const override { return "adafactor"; }
  // What Optimizer promises, with the formulas above.
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<Adafactor>(*this); }
  std::optional<LearningRate> learning_rate() const override { return options_.learning_rate; }
  std::unique_ptr<Optimizer> with_learning_rate(const LearningRate& rate) const override;
  GradientClipping clipping() const override;
  ParameterRules parameter_rules() const override;
  WeightAverage weight_average() const override;
  std::unique_ptr<Optimizer> with_weight_decay_times(float factor) const override;
  // "row_velocity" (r; v of arrays with fewer than two axes) and "column_velocity" (c; 0 for these).
  std::vector<std::string> slot_names() const override;
  bool needs_whole_arrays() const override { return true; }
  // The formula of an array of one axis. A Trainer calls update_array().
  void update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots) const override;
  void update_array(const ParameterArray& array, std::int64_t step, std::span<float> parameters,
                    std::span<const float> gradients, std::span<const std::span<float>> slots) const override;

 private:
  AdafactorOptions options_;
};

}  // namespace holdfast
