#pragma once

// Losses of margins, as keras.losses defines them (Keras 3). Outputs y are scores, such as those of a linear last
// layer.
//
//   Trainer trainer(replica, model, SGD{0.1F}, losses::Hinge{}, {metrics::Hinge{}});
//
// Targets have the shape of the outputs. Each loss is a function of values (value_loss.h): it is computed where the
// model is, and takes weights of samples and of positions. A NaN among the outputs is one in the loss.

#include "holdfast/nn/value_loss.h"

namespace holdfast::losses {

// mean(max(1 - t y, 0)) with labels t of -1 and 1. A label of 0 stands for -1. Keras asks whether all labels of a batch
// are 0 or 1, which gives the same for labels of either kind.
class Hinge final : public BuiltInLoss {
 public:
  Hinge();

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<Hinge>(*this); }
};

// mean(max(1 - t y, 0)^2) with the labels of Hinge.
class SquaredHinge final : public BuiltInLoss {
 public:
  SquaredHinge();

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<SquaredHinge>(*this); }
};

// max(1 + max((1 - t) y) - sum(t y), 0) along the last axis, whose targets are a one-hot row; the mean over the axes
// before it. The score of the right class counts as 0 among the others, as in Keras.
class CategoricalHinge final : public BuiltInLoss {
 public:
  CategoricalHinge();

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<CategoricalHinge>(*this); }
};

}  // namespace holdfast::losses
