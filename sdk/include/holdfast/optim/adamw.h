#pragma once

// Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019, algorithm 2 without its schedule; so
// keras.optimizers.AdamW): before each step of Adam
//
//   w -= w weight_decay lr
//
// on all parameters, biases and normalisation included.

#include <optional>

#include "holdfast/optim/learning_rate.h"
#include "holdfast/optim/optimizer.h"

namespace holdfast {

struct AdamWOptions {
  LearningRate learning_rate = 1e-3F;  // not negative
  float weight_decay = 4e-3F;          // not negative
  float beta_1 = 0.9F;                 // in [0, 1)
  float beta_2 = 0.999F;               // in [0, 1)
  float epsilon = 1e-7F;               // positive
  // At most one of these; see gradient_clipping.h.
  std::optional<float> clip_value{};
  std::optional<float> clip_norm{};
  std::optional<float> global_clip_norm{};
};

class AdamW : public Optimizer {
 public:
  // Throw Error{invalid_argument} for options out of their range.
  explicit AdamW(const AdamWOptions& options = {});
  explicit AdamW(const LearningRate& learning_rate) : AdamW(AdamWOptions{.learning_rate = learning_rate}) {}

  std::string name() const override;
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override;
  GradientClipping clipping() const override;
  // "m" and "v"
  std::vector<std::string> slot_names() const override;
  void update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots) const override;
  void update_on(compute::DeviceKernels& device, std::int64_t step, std::span<float> parameters,
                 std::span<const float> gradients, std::span<const std::span<float>> slots) const override;

 private:
  AdamWOptions options_;
};

}  // namespace holdfast
