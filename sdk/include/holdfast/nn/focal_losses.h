#pragma once

// Cross-entropies that count easy samples less (Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017), as
// keras.losses defines them (Keras 3), for classes of which some are rare. A sample with q near 1 has almost no loss:
// with a gamma of 2 and q = 0.9, it has a hundredth of its cross-entropy.
//
//   Trainer trainer(replica, model, Adam{}, losses::BinaryFocalCrossentropy{{.gamma = 3, .from_logits = true}});
//
// Below, q is the probability that the model gives to the target: t p + (1 - t)(1 - p), where p is the output, or its
// sigmoid or softmax with from_logits. Targets have the shape of the outputs. Probabilities are clipped to [e, 1 - e],
// e = 1e-7, within logarithms, and have no gradient there. Logits are not clipped. 1 - q counts as e at least.
//
// Each loss is a function of values (value_loss.h): it is computed where the model is, and takes weights of samples and
// of positions. Both throw Error{invalid_argument} for options out of range.

#include "holdfast/nn/crossentropy_options.h"
#include "holdfast/nn/value_loss.h"

namespace holdfast::losses {

// All but the last are part of configuration().
struct BinaryFocalCrossentropyOptions {
  bool apply_class_balancing = false;  // multiplies by alpha where t is 1, and by 1 - alpha where it is 0
  float alpha = 0.25F;                 // from 0 to 1
  float gamma = 2;                     // from 0 on; 0 is the plain cross-entropy
  bool from_logits = false;            // the outputs are scores before a sigmoid
  float label_smoothing = 0;           // from 0 to 1: t becomes t (1 - s) + s / 2
  bool accept_any_activation = false;  // as in CrossentropyOptions
};

// mean((1 - q)^gamma (-t log p - (1 - t) log(1 - p))), for independent labels: each output has a target of 0 or 1.
class BinaryFocalCrossentropy final : public BuiltInLoss {
 public:
  explicit BinaryFocalCrossentropy(BinaryFocalCrossentropyOptions options = {});

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<BinaryFocalCrossentropy>(*this); }

 private:
  BinaryFocalCrossentropyOptions options_;
};

// All but the last are part of configuration().
struct CategoricalFocalCrossentropyOptions {
  float alpha = 0.25F;                 // the factor of all classes; from 0 on
  float gamma = 2;                     // from 0 on
  bool from_logits = false;            // the outputs are scores before a softmax
  float label_smoothing = 0;           // from 0 to 1: t becomes t (1 - s) + s / classes
  bool accept_any_activation = false;  // as in CrossentropyOptions
};

// sum(-alpha (1 - p)^gamma t log p) along the last axis, whose outputs are divided by their sum first, and whose
// targets are a one-hot row; the mean over the axes before it. An output without an axis of classes is refused when a
// Trainer is made.
class CategoricalFocalCrossentropy final : public BuiltInLoss {
 public:
  explicit CategoricalFocalCrossentropy(CategoricalFocalCrossentropyOptions options = {});

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  Shape target_shape(const Shape& output) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<CategoricalFocalCrossentropy>(*this); }

 private:
  CategoricalFocalCrossentropyOptions options_;
};

}  // namespace holdfast::losses
