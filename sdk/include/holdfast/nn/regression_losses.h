#pragma once

// Losses of numbers, as keras.losses defines them (Keras 3). Loss and metric of one name are two classes, which Keras
// has in two modules and Holdfast in two namespaces: losses::MeanAbsoluteError is minimized, and
// metrics::MeanAbsoluteError is reported (regression_metrics.h). The losses and metrics that Holdfast had first are
// also known without a namespace: MeanSquaredError is the loss, and MeanAbsoluteError the metric.
//
//   Trainer trainer(replica, model, Adam{}, losses::Huber{{.delta = 2}}, {metrics::MeanSquaredError{}});
//
// Below, y is an output and t its target. Targets have the shape of the outputs. Each loss is a function of values
// (value_loss.h): it is computed where the model is, and takes weights of samples and of positions. The loss of a
// sample is the mean over its elements, unless a class says otherwise. A NaN among outputs or targets is one in the
// loss.

#include <cstdint>

#include "holdfast/nn/mean_squared_error.h"
#include "holdfast/nn/value_loss.h"

namespace holdfast::losses {

// mean(|y - t|). At y = t the gradient is 0.
class MeanAbsoluteError final : public BuiltInLoss {
 public:
  MeanAbsoluteError();

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<MeanAbsoluteError>(*this); }
};

// 100 mean(|y - t| / max(|t|, 1e-7)). Targets near 0 make it large.
class MeanAbsolutePercentageError final : public BuiltInLoss {
 public:
  MeanAbsolutePercentageError();

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<MeanAbsolutePercentageError>(*this); }
};

// mean((log(1 + max(y, e)) - log(1 + max(t, e)))^2), e = 1e-7. Outputs below e have no gradient.
class MeanSquaredLogarithmicError final : public BuiltInLoss {
 public:
  MeanSquaredLogarithmicError();

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<MeanSquaredLogarithmicError>(*this); }
};

struct HuberOptions {
  float delta = 1;  // the distance up to which the loss is quadratic
};

// The mean of d^2 / 2 where d = |y - t| is at most delta, and of delta d - delta^2 / 2 beyond (Huber, 1964).
class Huber final : public BuiltInLoss {
 public:
  // Throws Error{invalid_argument} unless delta is finite and above 0.
  explicit Huber(HuberOptions options = {});

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<Huber>(*this); }

 private:
  HuberOptions options_;
};

// mean(log(cosh(y - t))), computed as d + log(1 + exp(-2 d)) - log(2) with d = |y - t|, which no distance overflows.
class LogCosh final : public BuiltInLoss {
 public:
  LogCosh();

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<LogCosh>(*this); }
};

// mean(y - t log(y + 1e-7)), for counts t and rates y, up to a term without y. Outputs must not be negative: end the
// model with a softplus or an exponential. Otherwise the loss is NaN.
class Poisson final : public BuiltInLoss {
 public:
  Poisson();

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<Poisson>(*this); }
};

// sum(t log(t / y)) along the last axis, with t and y clipped to [1e-7, 1]; the mean over the axes before it. Both are
// probabilities: end the model with a softmax. Outputs that are clipped have no gradient.
class KLDivergence final : public BuiltInLoss {
 public:
  KLDivergence();

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<KLDivergence>(*this); }
};

struct CosineSimilarityOptions {
  std::int64_t axis = -1;  // of a sample, along which vectors lie; the first is 0, which Keras counts as 1
};

// -sum(y t) along the axis, after each vector was divided by its length: from -1 (one direction) to 1 (opposite). The
// mean over the other axes. A vector of zeros stays as it is, since its squares count as 1e-12 at least. An axis that
// the outputs lack throws Error{invalid_argument} where the Trainer is made.
class CosineSimilarity final : public BuiltInLoss {
 public:
  explicit CosineSimilarity(CosineSimilarityOptions options = {});

  // What ValueLoss promises.
  Value losses(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Loss> clone() const override { return std::make_unique<CosineSimilarity>(*this); }

 private:
  CosineSimilarityOptions options_;
};

}  // namespace holdfast::losses
