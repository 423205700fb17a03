// Most are a loss whose mean is reported. What is not a mean has sums, and a formula for the number of a whole epoch.
// docs/decisions/losses.md

#include "holdfast/nn/regression_metrics.h"

#include <fmt/format.h>

#include <cmath>

#include "core/json_object.h"
#include "holdfast/base/error.h"
#include "nn/losses/loss_values.h"

namespace holdfast::metrics {
namespace {

constexpr std::size_t kSumsOfR2 = 3;  // of an output: t, t^2, (t - y)^2

const char* text_of(R2Aggregation aggregation) {
  if (aggregation == R2Aggregation::none) return "null";
  return aggregation == R2Aggregation::uniform_average ? R"("uniform_average")" : R"("variance_weighted_average")";
}

// The member of the number stands there where it is not 0, so that other configurations stay as they were.
std::string r2_options(const R2ScoreOptions& options) {
  if (options.num_regressors < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("R2Score: num_regressors is at least 0, not {}", options.num_regressors));
  }
  JsonObject object;
  object.value("class_aggregation", text_of(options.class_aggregation));
  if (options.num_regressors > 0) object.integer("num_regressors", options.num_regressors);
  return object.members();
}

// Keras's for so many samples. Without more samples than regressors the score stays as it is, since the divisor would
// not be positive.
double adjusted_r2(double score, std::int64_t regressors, double samples) {
  const double rest = samples - static_cast<double>(regressors) - 1;
  return regressors == 0 || !(rest > 0) ? score : 1 - (1 - score) * (samples - 1) / rest;
}

struct R2OfOutput {
  double score = 0;
  double spread = 0;  // of the targets
};

// The score of an output whose sums begin there. The sum of squares around the mean is sum(t^2) - sum(t)^2 / n, since
// sums are all that shards can add. Targets that do not vary make the quotient infinite, which Keras reports as 0.
R2OfOutput r2_of(std::span<const double> sums, std::size_t first, double weight) {
  const double spread = sums[first + 1] - sums[first] * sums[first] / weight;
  const double raw = 1 - sums[first + 2] / spread;
  return {.score = std::isinf(raw) ? 0 : raw, .spread = spread};
}

struct CenteredPair {
  Value outputs;
  Value targets;
};

// Each less its mean along the axis.
CenteredPair centered(const Value& outputs, const Value& targets, std::int64_t axis) {
  return {.outputs = outputs - mean(outputs, {axis}, ReducedAxes::keep),
          .targets = targets - mean(targets, {axis}, ReducedAxes::keep)};
}

}  // namespace

MeanSquaredError::MeanSquaredError(const MetricOptions& options) : BuiltInMetric("mean_squared_error", options.name) {}

std::vector<Value> MeanSquaredError::sums(const Value& outputs, const Value& targets) const {
  return {square(outputs - targets)};
}

RootMeanSquaredError::RootMeanSquaredError(const MetricOptions& options)
    : BuiltInMetric("root_mean_squared_error", options.name) {}

std::vector<Value> RootMeanSquaredError::sums(const Value& outputs, const Value& targets) const {
  return {square(outputs - targets)};
}

// The root of the mean over the epoch. A mean of roots of batches would depend on how samples are cut.
double RootMeanSquaredError::result(std::span<const double> sums, double weight) const {
  return std::sqrt(sums[0] / weight);
}

MeanAbsolutePercentageError::MeanAbsolutePercentageError(const MetricOptions& options)
    : BuiltInMetric("mean_absolute_percentage_error", options.name) {}

std::vector<Value> MeanAbsolutePercentageError::sums(const Value& outputs, const Value& targets) const {
  return {absolute_percentage_error(outputs, targets)};
}

MeanSquaredLogarithmicError::MeanSquaredLogarithmicError(const MetricOptions& options)
    : BuiltInMetric("mean_squared_logarithmic_error", options.name) {}

std::vector<Value> MeanSquaredLogarithmicError::sums(const Value& outputs, const Value& targets) const {
  return {squared_logarithmic_error(outputs, targets)};
}

// Keras's default name of this metric is not its kind.
LogCoshError::LogCoshError(const MetricOptions& options)
    : BuiltInMetric("log_cosh_error", options.name.empty() ? "logcosh" : options.name) {}

std::vector<Value> LogCoshError::sums(const Value& outputs, const Value& targets) const {
  return {log_cosh(outputs, targets)};
}

CosineSimilarity::CosineSimilarity(const CosineSimilarityOptions& options)
    : BuiltInMetric("cosine_similarity", options.name, JsonObject().integer("axis", options.axis).members()),
      axis_(options.axis) {}

std::vector<Value> CosineSimilarity::sums(const Value& outputs, const Value& targets) const {
  return {cosine_similarity(outputs, targets, axis_)};
}

PearsonCorrelation::PearsonCorrelation(const CorrelationOptions& options)
    : BuiltInMetric("pearson_correlation", options.name, JsonObject().integer("axis", options.axis).members()),
      axis_(options.axis) {}

std::vector<Value> PearsonCorrelation::sums(const Value& outputs, const Value& targets) const {
  // Each sample has a correlation along the axis, and their mean is reported. Numbers that do not vary make it NaN.
  const CenteredPair of = centered(outputs, targets, axis_);
  return {mean(of.outputs * of.targets, {axis_}) /
          (square_root(mean(square(of.outputs), {axis_})) * square_root(mean(square(of.targets), {axis_})))};
}

ConcordanceCorrelation::ConcordanceCorrelation(const CorrelationOptions& options)
    : BuiltInMetric("concordance_correlation", options.name, JsonObject().integer("axis", options.axis).members()),
      axis_(options.axis) {}

std::vector<Value> ConcordanceCorrelation::sums(const Value& outputs, const Value& targets) const {
  const CenteredPair of = centered(outputs, targets, axis_);
  const Value spread = mean(square(of.outputs), {axis_}) + mean(square(of.targets), {axis_});
  const Value distance = mean(outputs, {axis_}) - mean(targets, {axis_});
  // Epsilon makes the correlation of two vectors without spread and distance 0 in place of NaN.
  return {2.0F * mean(of.outputs * of.targets, {axis_}) / (spread + square(distance) + kKerasEpsilon)};
}

R2Score::R2Score(const R2ScoreOptions& options)
    : BuiltInMetric("r2_score", options.name, r2_options(options)),
      aggregation_(options.class_aggregation),
      regressors_(options.num_regressors) {}

std::vector<Value> R2Score::sums(const Value& outputs, const Value& targets) const {
  // Each output needs sums of its own: a score made of sums over all outputs would be another number.
  const std::int64_t count = checked_classes("r2_score", outputs);
  std::vector<Value> sums;
  for (std::int64_t output = 0; output < count; ++output) {
    const Value t = element_of_last_axis(targets, output);
    sums.insert(sums.end(), {t, square(t), square(t - element_of_last_axis(outputs, output))});
  }
  return sums;
}

double R2Score::result(std::span<const double> sums, double weight) const {
  return adjusted_r2(mean_score(sums, weight), regressors_, weight);
}

double R2Score::mean_score(std::span<const double> sums, double weight) const {
  double scores = 0, weighted_scores = 0, spread = 0;
  for (std::size_t first = 0; first < sums.size(); first += kSumsOfR2) {
    const R2OfOutput of = r2_of(sums, first, weight);
    scores += of.score;
    weighted_scores += of.spread * of.score;
    spread += of.spread;
  }
  // Outputs whose targets vary more count more, as in scikit-learn.
  if (aggregation_ == R2Aggregation::variance_weighted_average) return weighted_scores / spread;
  return scores * static_cast<double>(kSumsOfR2) / static_cast<double>(sums.size());
}

std::vector<double> R2Score::results(std::span<const double> sums, double weight) const {
  if (aggregation_ != R2Aggregation::none) return {result(sums, weight)};
  std::vector<double> scores;
  for (std::size_t first = 0; first < sums.size(); first += kSumsOfR2)
    scores.push_back(adjusted_r2(r2_of(sums, first, weight).score, regressors_, weight));
  return scores;
}

std::vector<std::string> R2Score::result_names(const Shape& outputs) const {
  return aggregation_ == R2Aggregation::none ? names_of_elements(name(), outputs) : std::vector<std::string>{name()};
}

}  // namespace holdfast::metrics
