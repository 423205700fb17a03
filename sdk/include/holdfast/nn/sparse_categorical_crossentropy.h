#pragma once

// Cross-entropy of one class out of several, whose target is the number of the class:
//
//   loss = -log p[target],    p = softmax(output)                     with from_logits
//                             p = clip(output / sum(output), e, 1-e)  without, e = 1e-7, as Keras
//
// The gradient with logits is softmax(output) - one_hot(target), fused with the loss. Without, clipped probabilities
// have no gradient.

#include "holdfast/nn/crossentropy_options.h"
#include "holdfast/nn/loss.h"

namespace holdfast {

class SparseCategoricalCrossentropy : public Loss {
 public:
  explicit SparseCategoricalCrossentropy(CrossentropyOptions options = {}) : options_(options) {}

  std::string name() const override;
  std::string configuration() const override;
  std::unique_ptr<Loss> clone() const override;
  // A scalar; the output has one axis, the classes.
  Shape target_shape(const Shape& output) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  // A target that is not a whole number in [0, classes) is an Error{invalid_argument} that names the sample's row.
  float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples, float scale,
                 std::span<float> gradient) const override;
  void evaluate_on(compute::DeviceKernels& device, const DeviceBatch& batch, float scale,
                   float* gradient) const override;

 private:
  CrossentropyOptions options_;
};

}  // namespace holdfast
