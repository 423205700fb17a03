#pragma once

// Cross-entropy of a distribution over classes, usually a one-hot row
// (keras.losses.CategoricalCrossentropy):
//
//   loss = -sum_c target[c] log p[c],    p = softmax(output)                     with from_logits
//                                        p = clip(output / sum(output), e, 1-e)  without, e = 1e-7
//
// With logits the gradient is sum(target) softmax(output) - target. Without logits, probabilities that
// are clipped have no gradient. If targets are class numbers, use SparseCategoricalCrossentropy.
//
//   CategoricalCrossentropy{{.from_logits = true}}     // after a last layer without an activation

#include "holdfast/nn/crossentropy_options.h"
#include "holdfast/nn/loss.h"

namespace holdfast {

class CategoricalCrossentropy : public Loss {
 public:
  // A Trainer checks the options against the last layer. Throws Error{invalid_argument} for a smoothing out of range.
  explicit CategoricalCrossentropy(CrossentropyOptions options = {});

  // What Loss promises.
  std::string name() const override;
  std::string configuration() const override;
  std::unique_ptr<Loss> clone() const override;
  // The shape of the output, whose last axis are the classes.
  Shape target_shape(const Shape& output) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples, float scale,
                 std::span<float> gradient) const override;
  // The axes before the classes. The loss of a sample is the mean over its positions.
  std::size_t position_axes(const Shape& output) const override;
  const ValueLoss* as_values() const override { return smoothed_.get(); }
  bool describe_kernel(compute::LossShape& kernel) const override;

 private:
  CrossentropyOptions options_;
  std::shared_ptr<const ValueLoss> smoothed_;  // null without smoothing
};

namespace losses {
using holdfast::CategoricalCrossentropy;
}

}  // namespace holdfast
