#pragma once

// Metrics of true and false positives and negatives, as keras.metrics defines them (Keras 3). An output above the
// threshold is positive, and so is a target that is not 0.
//
//   Trainer trainer(replica, model, Adam{}, BinaryCrossentropy{{.from_logits = true}},
//                   {metrics::Precision{{.threshold = 0}}, metrics::Recall{{.threshold = 0}}});
//
// What is reported is that of all samples of an epoch, over all replicas: the precision of an epoch is not the mean of
// the precisions of its batches. Each element of an output counts, with the weight of its sample or position. Counts
// are sums of weights, exact up to 2^24 in a shard of a step. A division by 0 gives 0, as in Keras. A NaN among the
// outputs is negative. Each metric is a function of values (value_metric.h): it is computed where the model is.

#include <cstdint>
#include <optional>

#include "holdfast/nn/value_metric.h"

namespace holdfast::metrics {

// Options of the four metrics that count. Counts are reported as they are, for a whole epoch, and not divided.
struct CountOptions {
  float threshold = 0.5F;  // 0 if the outputs are logits; Keras takes 0 to 1
  // They replace `threshold`; each stands there once. A number is reported for each, as "true_positives_0.25".
  std::vector<float> thresholds = {};
  std::string name{};  // default: that of Keras, "true_positives"
};

// Options of Precision and Recall. Without class_id, all classes of the last axis are counted together.
struct PrecisionOptions {
  std::optional<float> threshold = {};  // as above; default: 0.5, or none with top_k
  std::vector<float> thresholds = {};   // as above
  // The first of equal elements count, as in Keras. With top_k and no threshold, all k are positive.
  std::optional<std::int64_t> top_k = {};     // only the k largest elements of the last axis may be positive
  std::optional<std::int64_t> class_id = {};  // only this element of the last axis; default: all
  std::string name{};                         // default: "precision" or "recall"
};

// What the metrics of counts have in common.
class ConfusionMetric : public BuiltInMetric {
 public:
  bool adds_elements() const final { return true; }
  std::size_t kept_axes() const final { return thresholds_.empty() ? 0 : 1; }
  std::vector<double> results(std::span<const double> sums, double weight) const final;
  std::vector<std::string> result_names(const Shape& outputs) const final;

 protected:
  // Throws Error{invalid_argument} for a threshold that is not finite or given twice, for both a threshold and a list
  // of them, a negative class, and less than one of the largest.
  ConfusionMetric(const std::string& kind, const PrecisionOptions& options);
  // Which elements are predicted positive, 1 or 0, and their targets. Throws Error{invalid_argument} for a class that
  // the outputs lack, and for more of the largest than there are classes.
  struct Elements {
    Value predicted;  // 1 or 0
    Value targets;    // 1 or 0
  };
  // Counts the class or the k largest ones, as the options say.
  Elements elements_of(const Value& outputs, const Value& targets) const;

 private:
  float threshold_;
  std::vector<float> thresholds_;
  std::optional<std::int64_t> top_k_;
  std::optional<std::int64_t> class_id_;
};

// How many elements are rightly positive.
//
//   metrics::TruePositives{{.thresholds = {0.5F, 0.9F}}}  // two numbers in the logs
class TruePositives final : public ConfusionMetric {
 public:
  // Throws Error{invalid_argument} for a threshold that is not finite, stands twice in a list, or is given besides a
  // list.
  explicit TruePositives(const CountOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  double result(std::span<const double> sums, double weight) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<TruePositives>(*this); }
};

// How many elements are wrongly positive: false alarms.
class FalsePositives final : public ConfusionMetric {
 public:
  // Throws Error{invalid_argument} for a threshold that is not finite, stands twice in a list, or is given besides a
  // list.
  explicit FalsePositives(const CountOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  double result(std::span<const double> sums, double weight) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<FalsePositives>(*this); }
};

// How many elements are rightly negative.
class TrueNegatives final : public ConfusionMetric {
 public:
  // Throws Error{invalid_argument} for a threshold that is not finite, stands twice in a list, or is given besides a
  // list.
  explicit TrueNegatives(const CountOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  double result(std::span<const double> sums, double weight) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<TrueNegatives>(*this); }
};

// How many elements are wrongly negative: misses.
class FalseNegatives final : public ConfusionMetric {
 public:
  // Throws Error{invalid_argument} for a threshold that is not finite, stands twice in a list, or is given besides a
  // list.
  explicit FalseNegatives(const CountOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  double result(std::span<const double> sums, double weight) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<FalseNegatives>(*this); }
};

// The share of true positives among what is predicted positive: tp / (tp + fp). 0 where nothing is.
//
//   metrics::Precision{{.top_k = 1, .class_id = 3}}  // how often an answer of class 3 is right
class Precision final : public ConfusionMetric {
 public:
  // Throws as ConfusionMetric's constructor does.
  explicit Precision(const PrecisionOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  double result(std::span<const double> sums, double weight) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<Precision>(*this); }
};

// The share of what is positive that is predicted so: tp / (tp + fn). 0 where nothing is. A low threshold makes it
// large, and Precision small.
//
//   metrics::Recall{{.class_id = 3}}  // how many of class 3 are found
class Recall final : public ConfusionMetric {
 public:
  // Throws as ConfusionMetric's constructor does.
  explicit Recall(const PrecisionOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  double result(std::span<const double> sums, double weight) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<Recall>(*this); }
};

// How the scores of several classes become one number. Keras's default is none.
enum class FBetaAverage {
  micro,     // the score of the counts of all classes
  macro,     // the mean of the scores
  weighted,  // weighted by how often a class is the target
  none       // they are reported as they are: "f1_score_0", "f1_score_1" and so on
};

struct F1ScoreOptions {
  FBetaAverage average = FBetaAverage::macro;  // see FBetaAverage
  // Above it, and up to 1, an element is positive. Default: the largest of a row is, and none of a row of zeros.
  std::optional<float> threshold = {};
  std::string name{};  // the name in the logs; empty: "f1_score"
};

struct FBetaScoreOptions {
  FBetaAverage average = FBetaAverage::macro;  // see FBetaAverage
  float beta = 1;                              // above 0; above 1, recall counts more than precision
  std::optional<float> threshold = {};         // as in F1ScoreOptions
  std::string name{};                          // the name in the logs; empty: "fbeta_score"
};

// (1 + b^2) P R / (b^2 P + R) of precision P and recall R, for each of at most 1024 classes along the last axis.
// Targets are 0 or 1. Denominators are larger by 1e-7, as in Keras.
//
//   metrics::FBetaScore{{.beta = 2}}  // a miss weighs more than a false alarm
class FBetaScore final : public BuiltInMetric {
 public:
  // Throws Error{invalid_argument} for options out of range.
  explicit FBetaScore(const FBetaScoreOptions& options = {});
  // Throws Error{invalid_argument} for more than 1024 classes, unless the average is micro.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  // With FBetaAverage::none, as with macro.
  double result(std::span<const double> sums, double weight) const override;
  std::vector<double> results(std::span<const double> sums, double weight) const override;
  std::vector<std::string> result_names(const Shape& outputs) const override;
  bool adds_elements() const override { return true; }
  std::unique_ptr<Metric> clone() const override { return std::make_unique<FBetaScore>(*this); }

 private:
  FBetaScoreOptions options_;
};

// FBetaScore with a beta of 1: the harmonic mean of precision and recall.
//
//   metrics::F1Score{{.average = metrics::FBetaAverage::none}}  // a score for each class
class F1Score final : public BuiltInMetric {
 public:
  // All throw as those of FBetaScore.
  explicit F1Score(const F1ScoreOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  // With FBetaAverage::none, as with macro.
  double result(std::span<const double> sums, double weight) const override;
  std::vector<double> results(std::span<const double> sums, double weight) const override;
  std::vector<std::string> result_names(const Shape& outputs) const override;
  bool adds_elements() const override { return true; }
  std::unique_ptr<Metric> clone() const override { return std::make_unique<F1Score>(*this); }

 private:
  FBetaScoreOptions options_;
};

}  // namespace holdfast::metrics
