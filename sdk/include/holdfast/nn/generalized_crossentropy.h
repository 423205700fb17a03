#pragma once

// A cross-entropy for class numbers of which some are wrong (Zhang and Sabuncu, 2018), as
// keras.losses.CategoricalGeneralizedCrossEntropy defines it (Keras 3):
//
//   loss = (1 - p^q) / q,    p the output of the target's class, a probability
//
//   Trainer trainer(replica, model, Adam{}, losses::CategoricalGeneralizedCrossEntropy{{.q = 0.7F}});
//
// As q goes to 0, it becomes -log p; as q goes to 1, it becomes 1 - p, which a wrong target pulls on less. It is a
// function of values (value_loss.h): it is computed where the model is, and takes weights of samples and positions.
// p counts as 1.2e-38 at least, the smallest normal f32, and has no gradient below it. A target that is not the number
// of a class has a p of 0.

#include "holdfast/nn/value_loss.h"

namespace holdfast::losses {

// Options of CategoricalGeneralizedCrossEntropy.
struct GeneralizedCrossentropyOptions {
  float q = 0.5F;                      // between 0 and 1
  bool accept_any_activation = false;  // as in CrossentropyOptions; not a part of configuration()
};

// The generalized cross-entropy of one-hot targets, with the formula above.
class CategoricalGeneralizedCrossEntropy final : public BuiltInLoss {
 public:
  // Throws Error{invalid_argument} for a q out of range.
  explicit CategoricalGeneralizedCrossEntropy(GeneralizedCrossentropyOptions options = {});

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  // The shape of the output without its last axis, the classes.
  Shape target_shape(const Shape& output) const override;
  void check_last_activation(std::optional<Activation> last) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<CategoricalGeneralizedCrossEntropy>(*this); }

 private:
  GeneralizedCrossentropyOptions options_;
};

}  // namespace holdfast::losses
