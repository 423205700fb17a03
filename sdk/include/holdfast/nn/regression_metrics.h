#pragma once

// Metrics of numbers, as keras.metrics defines them (Keras 3). Losses of the same names are in the namespace losses
// (regression_losses.h), which has the formulas; below, y is an output and t its target.
//
//   Trainer trainer(replica, model, Adam{}, MeanSquaredError{},
//                   {metrics::RootMeanSquaredError{}, metrics::R2Score{{.name = "r2"}}});
//
// What is reported is that of all samples of an epoch, over all replicas. Targets have the shape of the outputs. Each
// metric is a function of values (value_metric.h): it is computed where the model is, and takes weights of samples and
// of positions. A NaN among outputs or targets is one in the metric. Sums are f32 within a shard of a step.

#include <cstdint>

#include "holdfast/nn/mean_absolute_error.h"
#include "holdfast/nn/value_metric.h"

namespace holdfast::metrics {

// mean((y - t)^2). The name is "mean_squared_error" unless the options have another one, and so on for all below.
class MeanSquaredError final : public BuiltInMetric {
 public:
  explicit MeanSquaredError(const MetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<MeanSquaredError>(*this); }
};

// The square root of the mean over all samples of (y - t)^2.
class RootMeanSquaredError final : public BuiltInMetric {
 public:
  explicit RootMeanSquaredError(const MetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  double result(std::span<const double> sums, double weight) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<RootMeanSquaredError>(*this); }
};

// losses::MeanAbsolutePercentageError: the mean of 100 |t - y| / max(|t|, 1e-7). A target of 0 gives a huge number.
class MeanAbsolutePercentageError final : public BuiltInMetric {
 public:
  explicit MeanAbsolutePercentageError(const MetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<MeanAbsolutePercentageError>(*this); }
};

// losses::MeanSquaredLogarithmicError: the mean of (log(1 + y) - log(1 + t))^2, where numbers below 1e-7 count as that.
class MeanSquaredLogarithmicError final : public BuiltInMetric {
 public:
  explicit MeanSquaredLogarithmicError(const MetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<MeanSquaredLogarithmicError>(*this); }
};

// losses::LogCosh: the mean of log(cosh(y - t)), which is about (y - t)^2 / 2 for small differences and |y - t| - log 2
// for large ones. The name is "logcosh", as in Keras.
class LogCoshError final : public BuiltInMetric {
 public:
  explicit LogCoshError(const MetricOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<LogCoshError>(*this); }
};

struct CosineSimilarityOptions {
  std::int64_t axis = -1;  // of a sample; the first is 0, which Keras counts as 1
  std::string name{};      // the name in the logs; empty: "cosine_similarity"
};

// The cosine of the angle between y and t along the axis: 1 in one direction, where the loss of this name is -1.
class CosineSimilarity final : public BuiltInMetric {
 public:
  explicit CosineSimilarity(const CosineSimilarityOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<CosineSimilarity>(*this); }

 private:
  std::int64_t axis_;
};

// Options of the metrics of correlation.
struct CorrelationOptions {
  std::int64_t axis = -1;  // of a sample; the first is 0, which Keras counts as 1
  std::string name{};      // the name in the logs; empty: that of the class
};

// Pearson's correlation of y and t along the axis: cov(t, y) / (std(t) std(y)), from -1 to 1. As in Keras, it is that
// of the elements of one sample, averaged over the samples; where y or t is constant along the axis, it is NaN.
class PearsonCorrelation final : public BuiltInMetric {
 public:
  // An axis that the outputs lack is refused when a Trainer is made.
  explicit PearsonCorrelation(const CorrelationOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<PearsonCorrelation>(*this); }

 private:
  std::int64_t axis_;
};

// Lin's concordance along the axis, which is 1 only where y equals t: 2 cov(t, y) / (var(t) + var(y) + (mean(t) -
// mean(y))^2 + 1e-7). Averaged as above.
class ConcordanceCorrelation final : public BuiltInMetric {
 public:
  explicit ConcordanceCorrelation(const CorrelationOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<ConcordanceCorrelation>(*this); }

 private:
  std::int64_t axis_;
};

// How the scores of several outputs become one number; with none, they are reported as they are: "r2_score_0",
// "r2_score_1" and so on.
enum class R2Aggregation { uniform_average, variance_weighted_average, none };

struct R2ScoreOptions {
  R2Aggregation class_aggregation = R2Aggregation::uniform_average;  // see R2Aggregation
  std::string name{};                                                // the name in the logs; empty: "r2_score"
  // Variables that explain the targets, at least 0. Above 0, the score is adjusted for their number p and that of the
  // samples n (the sum of their weights, if they have some): 1 - (1 - score) (n - 1) / (n - p - 1). As in Keras, the
  // plain score is reported where n is at most p + 1.
  std::int64_t num_regressors = 0;
};

// 1 - sum((t - y)^2) / sum((t - mean(t))^2), for each element of the last axis, of which there are at most 1024; axes
// before it are positions. 1 is perfect, and 0 is what the mean of t reaches. An infinite score counts as 0, as in
// Keras; where t is always y and constant, it is NaN.
//
// The variance is mean(t^2) - mean(t)^2, of sums in f32. Targets whose mean is a thousand times their spread leave no
// digit of it: subtract the mean first, which a training needs anyway.
class R2Score final : public BuiltInMetric {
 public:
  // Throws Error{invalid_argument} for a negative number of regressors.
  explicit R2Score(const R2ScoreOptions& options = {});
  // Throws Error{invalid_argument} for more than 1024 outputs.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  // With R2Aggregation::none, as with uniform_average.
  double result(std::span<const double> sums, double weight) const override;
  std::vector<double> results(std::span<const double> sums, double weight) const override;
  std::vector<std::string> result_names(const Shape& outputs) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<R2Score>(*this); }

 private:
  double mean_score(std::span<const double> sums, double weight) const;

  R2Aggregation aggregation_;
  std::int64_t regressors_;
};

}  // namespace holdfast::metrics
