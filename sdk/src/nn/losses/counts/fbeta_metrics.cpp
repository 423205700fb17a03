// Three counts of each class are summed, from which Keras's formula makes a score when a number is reported. Only the
// average of all counts ("micro") needs no sums of its own for each class. docs/decisions/losses.md

#include <fmt/format.h>

#include <cmath>

#include "core/json_object.h"
#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "holdfast/nn/confusion_metrics.h"
#include "nn/losses/loss_values.h"

namespace holdfast::metrics {
namespace {

constexpr std::size_t kSumsOfFBeta = 3;  // of a class: true positives, false positives, false negatives

// Keras takes floats alone for these options, so a whole number is written as one.
std::string float_text(float value) {
  std::string text = json_number(value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

const char* text_of(FBetaAverage average) {
  if (average == FBetaAverage::none) return "null";
  return average == FBetaAverage::micro   ? R"("micro")"
         : average == FBetaAverage::macro ? R"("macro")"
                                          : R"("weighted")";
}

// `beta` is the text of that member, or empty.
std::string average_and_threshold(const char* kind, const FBetaScoreOptions& options, const std::string& beta = {}) {
  check_above_zero(kind, "beta", options.beta);
  if (options.threshold) {
    check_above_zero(kind, "threshold", *options.threshold);
    check_range(kind, "threshold", *options.threshold, 0, 1);
  }
  return JsonObject()
      .value("average", text_of(options.average))
      .append(beta)
      .value("threshold", options.threshold ? float_text(*options.threshold) : "null")
      .members();
}

std::string fbeta_options(const FBetaScoreOptions& options) {
  // A beta that is not finite is refused below, and has no text that JSON could hold.
  JsonObject beta;
  if (std::isfinite(options.beta)) beta.value("beta", float_text(options.beta));
  return average_and_threshold("fbeta_score", options, beta.members());
}

// The beta of F1Score is fixed, so it is left out of its configuration, as in Keras.
FBetaScoreOptions of_f1(const F1ScoreOptions& options) {
  return {.average = options.average, .beta = 1, .threshold = options.threshold, .name = options.name};
}

// With "micro", the elements of all classes are added up in one sum, since these metrics add elements and take no mean.
std::vector<Value> counts_of(const FBetaScoreOptions& options, const std::string& what, const Value& outputs,
                             const Value& targets) {
  if (outputs.shape().rank() == 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} takes outputs with an axis of classes", what));
  }
  const Value largest_of = largest(outputs, {-1}, ReducedAxes::keep);
  // A row of zeros has no largest element, as in Keras.
  const Value predicted = options.threshold ? less(*options.threshold, outputs)
                                            : less_equal(largest_of, outputs) * less(1e-9F, absolute(outputs));
  // Products, as in Keras, so that targets that are shares count in part.
  const std::vector<Value> counts = {predicted * targets, predicted * (1.0F - targets), (1.0F - predicted) * targets};
  if (options.average == FBetaAverage::micro) return counts;
  std::vector<Value> sums;
  const std::int64_t classes = checked_classes(what, outputs);
  for (std::int64_t index = 0; index < classes; ++index) {
    for (const Value& count : counts) sums.push_back(element_of_last_axis(count, index));
  }
  return sums;
}

// Keras's, which makes a score of 0 where a class does not occur.
constexpr double kEpsilon = 1e-7;

// The score of a class whose sums begin there.
double score_of_class(const FBetaScoreOptions& options, std::span<const double> sums, std::size_t first) {
  const double square = static_cast<double>(options.beta) * options.beta;
  const double right = sums[first];
  const double precision = right / (right + sums[first + 1] + kEpsilon);
  const double recall = right / (right + sums[first + 2] + kEpsilon);
  // Van Rijsbergen's F: beta says how many times recall counts as much as precision.
  return (1 + square) * (precision * recall / (square * precision + recall + kEpsilon));
}

// "weighted" counts a class as often as it is a target. The other averages count each class once.
double score_of(const FBetaScoreOptions& options, std::span<const double> sums) {
  double scores = 0, weighted_scores = 0, targets = 0;
  for (std::size_t first = 0; first < sums.size(); first += kSumsOfFBeta) {
    const double positive = sums[first] + sums[first + 2];
    const double score = score_of_class(options, sums, first);
    scores += score;
    weighted_scores += positive * score;
    targets += positive;
  }
  if (options.average == FBetaAverage::weighted) return weighted_scores / (targets + kEpsilon);
  return scores * static_cast<double>(kSumsOfFBeta) / static_cast<double>(sums.size());
}

std::vector<double> scores_of(const FBetaScoreOptions& options, std::span<const double> sums) {
  if (options.average != FBetaAverage::none) return {score_of(options, sums)};
  std::vector<double> scores;
  for (std::size_t first = 0; first < sums.size(); first += kSumsOfFBeta) {
    scores.push_back(score_of_class(options, sums, first));
  }
  return scores;
}

std::vector<std::string> names_of(const FBetaScoreOptions& options, const std::string& name, const Shape& outputs) {
  const bool is_list = options.average == FBetaAverage::none && outputs.rank() > 0;
  return is_list ? names_of_elements(name, outputs) : std::vector<std::string>{name};
}

}  // namespace

FBetaScore::FBetaScore(const FBetaScoreOptions& options)
    : BuiltInMetric("fbeta_score", options.name, fbeta_options(options)), options_(options) {}

std::vector<Value> FBetaScore::sums(const Value& outputs, const Value& targets) const {
  return counts_of(options_, name(), outputs, targets);
}

double FBetaScore::result(std::span<const double> sums, double) const {
  return score_of(options_, sums);
}

std::vector<double> FBetaScore::results(std::span<const double> sums, double) const {
  return scores_of(options_, sums);
}

std::vector<std::string> FBetaScore::result_names(const Shape& outputs) const {
  return names_of(options_, name(), outputs);
}

F1Score::F1Score(const F1ScoreOptions& options)
    : BuiltInMetric("f1_score", options.name, average_and_threshold("f1_score", of_f1(options))),
      options_(of_f1(options)) {}

std::vector<Value> F1Score::sums(const Value& outputs, const Value& targets) const {
  return counts_of(options_, name(), outputs, targets);
}

double F1Score::result(std::span<const double> sums, double) const {
  return score_of(options_, sums);
}

std::vector<double> F1Score::results(std::span<const double> sums, double) const {
  return scores_of(options_, sums);
}

std::vector<std::string> F1Score::result_names(const Shape& outputs) const {
  return names_of(options_, name(), outputs);
}

}  // namespace holdfast::metrics
