#pragma once

// Stochastic gradient descent, with parameter w, gradient g and learning rate lr (formulae of keras.optimizers.SGD):
//
//   momentum 0:         w -= lr g
//   momentum m:         v = m v - lr g,  w += v
//   Nesterov momentum:  v = m v - lr g,  w += m v - lr g

#include <optional>

#include "holdfast/optim/learning_rate.h"
#include "holdfast/optim/optimizer.h"

namespace holdfast {

struct SGDOptions {
  LearningRate learning_rate = 0.01F;  // not negative
  float momentum = 0;                  // in [0, 1]
  bool nesterov = false;               // without effect where momentum is 0
  // At most one of these; see gradient_clipping.h.
  std::optional<float> clip_value{};
  std::optional<float> clip_norm{};
  std::optional<float> global_clip_norm{};
};

class SGD : public Optimizer {
 public:
  // Throw Error{invalid_argument} for options out of their range.
  explicit SGD(const SGDOptions& options = {});
  explicit SGD(const LearningRate& learning_rate) : SGD(SGDOptions{.learning_rate = learning_rate}) {}

  std::string name() const override;
  std::string configuration() const override;
  std::unique_ptr<Optimizer> clone() const override;
  GradientClipping clipping() const override;
  // "momentum", or none where it is 0.
  std::vector<std::string> slot_names() const override;
  void update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots) const override;
  void update_on(compute::DeviceKernels& device, std::int64_t step, std::span<float> parameters,
                 std::span<const float> gradients, std::span<const std::span<float>> slots) const override;

 private:
  SGDOptions options_;
};

}  // namespace holdfast
