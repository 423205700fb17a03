#pragma once

// Cross-entropy of one class out of several, with the number of the class as the target
// (keras.losses.SparseCategoricalCrossentropy), of each position where the output has axes before the
// classes:
//
//   loss = -log p[target],    p = softmax(output)                     with from_logits
//                             p = clip(output / sum(output), e, 1-e)  without, e = 1e-7
//
// With logits the gradient is softmax(output) - one_hot(target), fused with the loss. Without logits,
// probabilities that are clipped have no gradient. Targets of .ignore_class have no loss and are not counted; on GPUs
// the host computes the loss then, and with a .label_smoothing.
//
//   SparseCategoricalCrossentropy{{.from_logits = true}}     // after a last layer without an activation
//
// A language model has many classes at many positions. With .positions_at_once its scores never lie in memory whole.
//
//   SparseCategoricalCrossentropy{{.from_logits = true, .positions_at_once = 256}}

#include "holdfast/nn/crossentropy_options.h"
#include "holdfast/nn/loss.h"

namespace holdfast {

class SparseCategoricalCrossentropy : public Loss {
 public:
  // A Trainer checks the options against the last layer. Throws Error{invalid_argument} for a label_smoothing out of
  // [0, 1] or without from_logits, and for positions_at_once below 0 or without from_logits.
  explicit SparseCategoricalCrossentropy(CrossentropyOptions options = {});

  // What Loss promises.
  std::string name() const override;
  std::string configuration() const override;
  std::unique_ptr<Loss> clone() const override;
  // The shape of the output without its last axis, the classes: a scalar if the output has only that axis.
  Shape target_shape(const Shape& output) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  // Throws Error{invalid_argument} that names the row if a target is not a whole number in [0, classes).
  float evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples, float scale,
                 std::span<float> gradient) const override;
  // The axes before the classes. The loss of a sample is the mean over its positions.
  std::size_t position_axes(const Shape& output) const override;
  std::optional<float> ignored_target() const override;
  std::int64_t positions_at_once() const override { return options_.positions_at_once; }
  bool describe_kernel(compute::LossShape& kernel) const override;

 private:
  CrossentropyOptions options_;
};

namespace losses {
using holdfast::SparseCategoricalCrossentropy;
}

}  // namespace holdfast
