// Formulas that a metric of the same name shares stand in loss_values.cpp. The mean over the elements of a sample is
// taken by the graph of the loss (program/value_program.cpp), so none of them has it here.

#include "holdfast/nn/regression_losses.h"

#include "core/json_object.h"
#include "nn/losses/loss_values.h"

namespace holdfast::losses {
namespace {

std::string checked_huber(const HuberOptions& options) {
  check_above_zero("huber", "delta", options.delta);
  return JsonObject().number("delta", options.delta).members();
}

}  // namespace

MeanAbsoluteError::MeanAbsoluteError() : BuiltInLoss("mean_absolute_error") {}

Value MeanAbsoluteError::losses(const Value& outputs, const Value& targets) const {
  return absolute_error(outputs, targets);
}

MeanAbsolutePercentageError::MeanAbsolutePercentageError() : BuiltInLoss("mean_absolute_percentage_error") {}

Value MeanAbsolutePercentageError::losses(const Value& outputs, const Value& targets) const {
  return absolute_percentage_error(outputs, targets);
}

MeanSquaredLogarithmicError::MeanSquaredLogarithmicError() : BuiltInLoss("mean_squared_logarithmic_error") {}

Value MeanSquaredLogarithmicError::losses(const Value& outputs, const Value& targets) const {
  return squared_logarithmic_error(outputs, targets);
}

Huber::Huber(HuberOptions options) : BuiltInLoss("huber", checked_huber(options)), options_(options) {}

Value Huber::losses(const Value& outputs, const Value& targets) const {
  const float delta = options_.delta;
  // Both branches have the same value and slope at delta, so it does not matter which one takes equal numbers.
  const Value distance = absolute(outputs - targets);
  return where(less(delta, distance), delta * distance - 0.5F * delta * delta, 0.5F * square(distance));
}

LogCosh::LogCosh() : BuiltInLoss("log_cosh") {}

Value LogCosh::losses(const Value& outputs, const Value& targets) const {
  return log_cosh(outputs, targets);
}

Poisson::Poisson() : BuiltInLoss("poisson") {}

Value Poisson::losses(const Value& outputs, const Value& targets) const {
  return poisson(outputs, targets);
}

KLDivergence::KLDivergence() : BuiltInLoss("kl_divergence") {}

Value KLDivergence::losses(const Value& outputs, const Value& targets) const {
  return kl_divergence(outputs, targets);
}

CosineSimilarity::CosineSimilarity(CosineSimilarityOptions options)
    : BuiltInLoss("cosine_similarity", JsonObject().integer("axis", options.axis).members()), options_(options) {}

Value CosineSimilarity::losses(const Value& outputs, const Value& targets) const {
  // Training makes a loss smaller, and similar vectors have a large similarity. The metric has the other sign.
  return -cosine_similarity(outputs, targets, options_.axis);
}

}  // namespace holdfast::losses
