#pragma once

// Cross-entropy of independent yes-or-no answers, targets in [0, 1], the mean over a sample's elements:
//
//   loss = -mean(t log p + (1 - t) log(1 - p)),    p = sigmoid(output)         with from_logits
//                                                  p = clip(output, e, 1 - e)  without, e = 1e-7, as Keras
//
// The gradient with logits is (p - t) / elements. Without, clipped probabilities have no gradient.

#include "holdfast/nn/crossentropy_options.h"
#include "holdfast/nn/loss.h"

namespace holdfast {

class BinaryCrossentropy : public Loss {
 public:
  explicit BinaryCrossentropy(CrossentropyOptions options = {}) : options_(options) {}

  std::string name() const override;
  std::string configuration() const override;
  std::unique_ptr<Loss> clone() const override;
  // The output's shape.
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
