#pragma once

// Cross-entropy of independent yes-or-no answers (keras.losses.BinaryCrossentropy). The loss of a
// sample is the mean over its elements, with targets t in [0, 1]:
//
//   loss = -mean(t log p + (1 - t) log(1 - p)),    p = sigmoid(output)         with from_logits
//                                                  p = clip(output, e, 1 - e)  without, e = 1e-7
//
// With logits the gradient is (p - t) / elements. Without logits, probabilities that are clipped have
// no gradient. Prefer logits: they keep their precision near 0 and 1.
//
//   BinaryCrossentropy{{.from_logits = true}}     // after a last layer without an activation

#include "holdfast/nn/crossentropy_options.h"
#include "holdfast/nn/loss.h"

namespace holdfast {

class BinaryCrossentropy : public Loss {
 public:
  // A Trainer checks the options against the last layer. Throws Error{invalid_argument} for a smoothing out of range.
  explicit BinaryCrossentropy(CrossentropyOptions options = {});

  // What Loss promises.
  std::string name() const override;
  std::string configuration() const override;
  std::unique_ptr<Loss> clone() const override;
  // The shape of the output.
  Shape target_shape(const Shape& output) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples, float scale,
                 std::span<float> gradient) const override;
  bool is_mean_of_elements() const override { return true; }
  const ValueLoss* as_values() const override { return smoothed_.get(); }
  bool describe_kernel(compute::LossShape& kernel) const override;

 private:
  CrossentropyOptions options_;
  std::shared_ptr<const ValueLoss> smoothed_;  // null without smoothing
};

namespace losses {
using holdfast::BinaryCrossentropy;
}

}  // namespace holdfast
