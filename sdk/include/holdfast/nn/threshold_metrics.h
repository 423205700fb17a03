#pragma once

// Metrics of true and false positives at many thresholds, as keras.metrics defines them (Keras 3): the area under a
// curve, and the best of one rate where another one reaches a value.
//
//   Trainer trainer(replica, model, Adam{}, BinaryCrossentropy{{.from_logits = true}},
//                   {metrics::AUC{{.from_logits = true}}, metrics::AUC{{.curve = metrics::AUCCurve::pr, .name =
//                   "pr"}}});
//
// An output above a threshold is positive, and so is a target that is not 0; each element of an output counts, with the
// weight of its sample or position. Outputs are probabilities; below 0 they count as 0, and above 1 as 1. What is
// reported is that of all samples of an epoch, over all replicas. Counts are sums of weights, exact up to 2^24 in a
// shard of a step. A division by 0 gives 0, as in Keras. A NaN among the outputs is negative.
//
// Each metric is a function of values (value_metric.h): it is computed where the model is. It compares each element
// with each threshold, so a shard of n elements needs some 8 n thresholds bytes of memory. For pictures whose pixels
// are the elements, take few thresholds.

#include <cstdint>
#include <optional>
#include <vector>

#include "holdfast/nn/value_metric.h"

namespace holdfast::metrics {

// What is drawn at each threshold: the true positive rate over the false positive rate; precision over recall; or both
// as gains over a model that says always yes (Flach and Kull, 2015).
enum class AUCCurve { roc, pr, pr_gain };
// The height of an area between two points of a curve: their mean, the smaller or the larger. With AUCCurve::pr,
// interpolation takes the counts as linear, not the precision (Davis and Goadrich, 2006).
enum class AUCSummation { interpolation, minoring, majoring };

struct AUCOptions {
  std::int64_t num_thresholds = 200;  // at least 2, evenly from 0 to 1; the first one is below 0, the last above 1
  AUCCurve curve = AUCCurve::roc;     // see AUCCurve
  AUCSummation summation_method = AUCSummation::interpolation;  // see AUCSummation
  std::vector<float> thresholds = {};  // from 0 to 1, in place of num_thresholds; one below 0 and one above 1 are added
  bool multi_label = false;            // a curve for each element of the last axis; their mean is reported
  // For each element of the last axis, from 0 on: weights of the curves with multi_label, else of the elements.
  std::vector<float> label_weights = {};
  // Whether the outputs are scores before a sigmoid. A Trainer refuses what does not fit the last activation of the
  // model, as far as that is known.
  bool from_logits = false;
  bool accept_any_activation = false;  // for outputs that are probabilities all the same
  std::string name{};                  // default: "auc"
};

// The area under the curve.
class AUC final : public BuiltInMetric {
 public:
  // Throws Error{invalid_argument} for options out of range.
  explicit AUC(const AUCOptions& options = {});

  // Throws Error{invalid_argument} unless targets have the shape of the outputs, and the label weights the extent of
  // the last axis.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  double result(std::span<const double> sums, double weight) const override;
  bool adds_elements() const override { return true; }
  std::size_t kept_axes() const override { return 2; }
  void check_last_activation(std::optional<Activation> last) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<AUC>(*this); }

 private:
  AUCOptions options_;
};

// Options of the four metrics below.
struct OperatingPointOptions {
  std::int64_t num_thresholds = 200;          // at least 1, evenly from 0 to 1; a single one is 0.5
  std::optional<std::int64_t> class_id = {};  // only this element of the last axis; default: all
  std::string name{};                         // default: that of Keras, "precision_at_recall"
};

// What the metrics have in common that look for the best threshold. Where none reaches the value, they are 0.
class OperatingPointMetric : public BuiltInMetric {
 public:
  // Throws Error{invalid_argument} for a class that the outputs lack, and unless targets have the shape of the outputs.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const final;
  bool adds_elements() const final { return true; }
  std::size_t kept_axes() const final { return 2; }

 protected:
  // `option` names the value that a rate must reach. Throws Error{invalid_argument} unless it is from 0 to 1, and for
  // options out of range.
  OperatingPointMetric(const std::string& kind, const std::string& option, float value,
                       const OperatingPointOptions& options);
  float value() const { return value_; }  // that a rate must reach

 private:
  float value_;
  OperatingPointOptions options_;
};

// The best precision of the thresholds whose recall is at least that.
class PrecisionAtRecall final : public OperatingPointMetric {
 public:
  // Throws as OperatingPointMetric does.
  explicit PrecisionAtRecall(float recall, const OperatingPointOptions& options = {});

  // What ValueMetric promises.
  double result(std::span<const double> sums, double weight) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<PrecisionAtRecall>(*this); }
};

// The best recall of the thresholds whose precision is at least that.
class RecallAtPrecision final : public OperatingPointMetric {
 public:
  // Throws as OperatingPointMetric does.
  explicit RecallAtPrecision(float precision, const OperatingPointOptions& options = {});

  // What ValueMetric promises.
  double result(std::span<const double> sums, double weight) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<RecallAtPrecision>(*this); }
};

// Sensitivity is the share of true positives among what is positive, specificity that of true negatives among what is
// negative. The best sensitivity of the thresholds whose specificity is at least that.
class SensitivityAtSpecificity final : public OperatingPointMetric {
 public:
  // Throws as OperatingPointMetric does.
  explicit SensitivityAtSpecificity(float specificity, const OperatingPointOptions& options = {});

  // What ValueMetric promises.
  double result(std::span<const double> sums, double weight) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<SensitivityAtSpecificity>(*this); }
};

// The best specificity of the thresholds whose sensitivity is at least that.
class SpecificityAtSensitivity final : public OperatingPointMetric {
 public:
  // Throws as OperatingPointMetric does.
  explicit SpecificityAtSensitivity(float sensitivity, const OperatingPointOptions& options = {});

  // What ValueMetric promises.
  double result(std::span<const double> sums, double weight) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<SpecificityAtSensitivity>(*this); }
};

}  // namespace holdfast::metrics
