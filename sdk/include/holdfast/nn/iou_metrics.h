#pragma once

// Intersection over union, as keras.metrics defines it (Keras 3), for pictures whose pixels have classes:
//
//   Trainer trainer(replica, model, Adam{}, SparseCategoricalCrossentropy{{.from_logits = true}},
//                   {metrics::MeanIoU{21, {.ignore_class = 255, .sparse_outputs = false}}});
//
// For each class it is tp / (tp + fp + fn): how many positions are rightly of that class, among those that are of it
// by target or output. What is reported is the mean over the given classes that occur, for all samples of an epoch,
// over all replicas. Positions count with their weight, or that of their sample; counts are exact up to 2^24 in a shard
// of a step. A position counts only where both target and output are numbers of classes, from 0 on.
//
// Classes are numbers, or rows along the last axis, whose first largest element counts. Each metric is a function of
// values (value_metric.h): it is computed where the model is. It keeps three numbers for each class.

#include <cstdint>
#include <optional>
#include <vector>

#include "holdfast/nn/value_metric.h"

namespace holdfast::metrics {

// Options of IoU and MeanIoU.
struct IoUOptions {
  std::optional<std::int64_t> ignore_class = {};  // positions with this number as target do not count
  bool sparse_targets = true;  // targets are class numbers; else rows, such as one-hot ones. Keras: sparse_y_true
  bool sparse_outputs = true;  // as above; false for the outputs of a softmax, or logits. Keras: sparse_y_pred
  std::string name{};          // default: that of Keras, "io_u" or "mean_io_u"
};

struct OneHotIoUOptions {
  std::optional<std::int64_t> ignore_class = {};  // as in IoUOptions
  bool sparse_outputs = false;                    // as in IoUOptions
  std::string name{};                             // default: "one_hot_io_u" or "one_hot_mean_io_u"
};

struct BinaryIoUOptions {
  std::vector<std::int64_t> target_class_ids = {0, 1};  // of which the mean is reported
  float threshold = 0.5F;                               // outputs from here on are of class 1
  std::string name{};                                   // default: "binary_io_u"
};

// What the metrics have in common.
class IoUMetric : public BuiltInMetric {
 public:
  // Throws Error{invalid_argument} for rows of another number of classes, and for outputs that do not fit the targets.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  double result(std::span<const double> sums, double weight) const final;
  bool adds_elements() const final { return true; }
  std::size_t kept_axes() const final { return 1; }

 protected:
  // `members` are those of the configuration. Throws Error{invalid_argument} unless there is at least one class, and
  // for ids of classes that it lacks.
  IoUMetric(const std::string& kind, std::int64_t num_classes, std::vector<std::int64_t> target_class_ids,
            const IoUOptions& options, const std::string& members);
  // What sums() gives, of rows that are 1 at the class of a position, and else 0. Both have the shape [..., classes].
  std::vector<Value> sums_of_rows(const Value& outputs, const Value& targets) const;

 private:
  std::int64_t num_classes_;
  std::vector<std::int64_t> target_class_ids_;
  IoUOptions options_;
};

// The mean of these classes. Throws Error{invalid_argument} as IoUMetric's constructor does; so do all below.
//
//   metrics::IoU{2, {1}, {.sparse_outputs = false}}  // of the foreground alone
class IoU final : public IoUMetric {
 public:
  // Throws as IoUMetric does.
  IoU(std::int64_t num_classes, const std::vector<std::int64_t>& target_class_ids, const IoUOptions& options = {});

  // What ValueMetric promises.
  std::unique_ptr<Metric> clone() const override { return std::make_unique<IoU>(*this); }
};

// The mean of all classes.
class MeanIoU final : public IoUMetric {
 public:
  // Throws as IoUMetric does.
  explicit MeanIoU(std::int64_t num_classes, const IoUOptions& options = {});

  // What ValueMetric promises.
  std::unique_ptr<Metric> clone() const override { return std::make_unique<MeanIoU>(*this); }
};

// IoU of rows as targets, such as one-hot ones: their first largest element is the class.
class OneHotIoU final : public IoUMetric {
 public:
  // Throws as IoUMetric does.
  OneHotIoU(std::int64_t num_classes, const std::vector<std::int64_t>& target_class_ids,
            const OneHotIoUOptions& options = {});

  // What ValueMetric promises.
  std::unique_ptr<Metric> clone() const override { return std::make_unique<OneHotIoU>(*this); }
};

// MeanIoU of rows as targets.
class OneHotMeanIoU final : public IoUMetric {
 public:
  // Throws as IoUMetric does.
  explicit OneHotMeanIoU(std::int64_t num_classes, const OneHotIoUOptions& options = {});

  // What ValueMetric promises.
  std::unique_ptr<Metric> clone() const override { return std::make_unique<OneHotMeanIoU>(*this); }
};

// IoU of two classes, from one number at each position. Targets are 0 or 1; a NaN among the outputs is of class 0.
class BinaryIoU final : public IoUMetric {
 public:
  // Throws Error{invalid_argument} for a threshold that is not finite, and for ids other than 0 and 1.
  explicit BinaryIoU(const BinaryIoUOptions& options = {});

  // What ValueMetric promises.
  std::vector<Value> sums(const Value& outputs, const Value& targets) const override;
  std::unique_ptr<Metric> clone() const override { return std::make_unique<BinaryIoU>(*this); }

 private:
  float threshold_;
};

}  // namespace holdfast::metrics
