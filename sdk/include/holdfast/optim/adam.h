#pragma once

// Adam (Kingma and Ba, ICLR 2015, section 2, the faster form before section 2.1; so keras.optimizers.Adam), at step t
// with gradient g:
//
//   m += (g - m) (1 - beta_1)
//   v += (g^2 - v) (1 - beta_2)
//   w -= m lr sqrt(1 - beta_2^t) / (1 - beta_1^t) / (sqrt(v) + epsilon)
//
// Epsilon is thus "epsilon hat" of the paper, as in Keras.

#include <optional>

#include "holdfast/optim/learning_rate.h"
#include "holdfast/optim/optimizer.h"

namespace holdfast {

struct AdamOptions {
  LearningRate learning_rate = 1e-3F;  // not negative
  float beta_1 = 0.9F;                 // in [0, 1)
  float beta_2 = 0.999F;               // in [0, 1)
  float epsilon = 1e-7F;               // positive
  // At most one of these; see gradient_clipping.h.
  std::optional<float> clip_value{};
  std::optional<float> clip_norm{};
  std::optional<float> global_clip_norm{};
};

class Adam : public Optimizer {
 public:
  // Throw Error{invalid_argument} for options out of their range.
  explicit Adam(const AdamOptions& options = {});
  explicit Adam(const LearningRate& learning_rate) : Adam(AdamOptions{.learning_rate = learning_rate}) {}

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
  AdamOptions options_;
};

}  // namespace holdfast
