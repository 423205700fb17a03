#pragma once

// Cross-entropy of one class out of several, with the number of the class as the target
// (keras.losses.SparseCategoricalCrossentropy):
//
//   loss = -log p[target],    p = softmax(output)                     with from_logits
//                             p = clip(output / sum(output), e, 1-e)  without, e = 1e-7
//
// With logits the gradient is softmax(output) - one_hot(target), fused with the loss. Without logits,
// probabilities that are clipped have no gradient.
//
//   SparseCategoricalCrossentropy{{.from_logits = true}}     // after a last layer without an activation

#include "holdfast/nn/crossentropy_options.h"
#include "holdfast/nn/loss.h"

namespace holdfast {

class SparseCategoricalCrossentropy : public Loss {
 public:
  // Any combination of options is valid; a Trainer checks them against the last layer.
  explicit SparseCategoricalCrossentropy(CrossentropyOptions options = {}) : options_(options) {}

  // What Loss promises.
  std::string name() const override;
  std::string configuration() const override;
  std::unique_ptr<Loss> clone() const override;
  // A scalar. The output has one axis: the classes.
  Shape target_shape(const Shape& output) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  // Throws Error{invalid_argument} that names the row of the sample if a target is not a whole number
  // in [0, classes).
  float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples, float scale,
                 std::span<float> gradient) const override;
  void evaluate_on(compute::DeviceKernels& device, const DeviceBatch& batch, float scale,
                   float* gradient) const override;

 private:
  CrossentropyOptions options_;
};

}  // namespace holdfast
