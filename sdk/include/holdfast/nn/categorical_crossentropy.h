#pragma once

// Cross-entropy of a distribution over classes, usually a one-hot row:
//
//   loss = -sum_c target[c] log p[c],    p = softmax(output)                     with from_logits
//                                        p = clip(output / sum(output), e, 1-e)  without, e = 1e-7, as Keras
//
// The gradient with logits is sum(target) softmax(output) - target. Without, clipped probabilities have no gradient.

#include "holdfast/nn/crossentropy_options.h"
#include "holdfast/nn/loss.h"

namespace holdfast {

class CategoricalCrossentropy : public Loss {
 public:
  explicit CategoricalCrossentropy(CrossentropyOptions options = {}) : options_(options) {}

  std::string name() const override;
  std::string configuration() const override;
  std::unique_ptr<Loss> clone() const override;
  // The output's shape, which has one axis, the classes.
  Shape target_shape(const Shape& output) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples, float scale,
                 std::span<float> gradient) const override;
  void evaluate_on(compute::DeviceKernels& device, const DeviceBatch& batch, float scale,
                   float* gradient) const override;

 private:
  CrossentropyOptions options_;
};

}  // namespace holdfast
