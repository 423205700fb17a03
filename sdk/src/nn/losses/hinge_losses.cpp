// The formulas are those of the metrics of the same names, and stand once, in loss_values.cpp.

#include "holdfast/nn/hinge_losses.h"

#include "nn/losses/loss_values.h"

namespace holdfast::losses {

Hinge::Hinge() : BuiltInLoss("hinge") {}

Value Hinge::losses(const Value& outputs, const Value& targets) const {
  return hinge(outputs, targets);
}

SquaredHinge::SquaredHinge() : BuiltInLoss("squared_hinge") {}

Value SquaredHinge::losses(const Value& outputs, const Value& targets) const {
  return square(hinge(outputs, targets));
}

CategoricalHinge::CategoricalHinge() : BuiltInLoss("categorical_hinge") {}

Value CategoricalHinge::losses(const Value& outputs, const Value& targets) const {
  return categorical_hinge(outputs, targets);
}

}  // namespace holdfast::losses
