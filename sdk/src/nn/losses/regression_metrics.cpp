// Most are a loss whose mean is reported. What is not a mean has sums, and a formula for the number of a whole epoch.

#include "holdfast/nn/regression_metrics.h"

#include <fmt/format.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "nn/losses/loss_values.h"

namespace holdfast::metrics {
namespace {

constexpr std::size_t kSumsOfR2 = 3;  // of an output: t, t^2, (t - y)^2

const char* text_of(R2Aggregation aggregation) {
  return aggregation == R2Aggregation::uniform_average ? "uniform_average" : "variance_weighted_average";
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

LogCoshError::LogCoshError(const MetricOptions& options)
    : BuiltInMetric("log_cosh_error", options.name.empty() ? "logcosh" : options.name) {}

std::vector<Value> LogCoshError::sums(const Value& outputs, const Value& targets) const {
  return {log_cosh(outputs, targets)};
}

CosineSimilarity::CosineSimilarity(const CosineSimilarityOptions& options)
    : BuiltInMetric("cosine_similarity", options.name, fmt::format(R"("axis":{})", options.axis)),
      axis_(options.axis) {}

std::vector<Value> CosineSimilarity::sums(const Value& outputs, const Value& targets) const {
  return {cosine_similarity(outputs, targets, axis_)};
}

R2Score::R2Score(const R2ScoreOptions& options)
    : BuiltInMetric("r2_score", options.name,
                    fmt::format(R"("class_aggregation":"{}")", text_of(options.class_aggregation))),
      aggregation_(options.class_aggregation) {}

std::vector<Value> R2Score::sums(const Value& outputs, const Value& targets) const {
  const std::int64_t count = checked_classes("r2_score", outputs);
  std::vector<Value> sums;
  for (std::int64_t output = 0; output < count; ++output) {
    const Value t = element_of_last_axis(targets, output);
    sums.insert(sums.end(), {t, square(t), square(t - element_of_last_axis(outputs, output))});
  }
  return sums;
}

double R2Score::result(std::span<const double> sums, double weight) const {
  double scores = 0, weighted_scores = 0, spread = 0;
  for (std::size_t first = 0; first < sums.size(); first += kSumsOfR2) {
    const double total = sums[first + 1] - sums[first] * sums[first] / weight;
    const double raw = 1 - sums[first + 2] / total;
    const double score = std::isinf(raw) ? 0 : raw;
    scores += score;
    weighted_scores += total * score;
    spread += total;
  }
  if (aggregation_ == R2Aggregation::variance_weighted_average) return weighted_scores / spread;
  return scores * static_cast<double>(kSumsOfR2) / static_cast<double>(sums.size());
}

}  // namespace holdfast::metrics
