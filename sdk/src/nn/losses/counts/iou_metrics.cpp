// The rows and columns of a confusion matrix add up to how often a class is target and output, and its diagonal is how
// often it is both. These three are all that the formula needs, so the sums are three arrays instead of a matrix.
// docs/decisions/losses.md

#include "holdfast/nn/iou_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/json_object.h"
#include "holdfast/base/error.h"
#include "nn/losses/loss_values.h"

namespace holdfast::metrics {
namespace {

std::int64_t checked_class_count(const std::string& kind, std::int64_t num_classes) {
  if (num_classes >= 1) return num_classes;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} was given {} as the number of classes; it is at least 1", kind, num_classes));
}

std::vector<std::int64_t> checked_ids(const std::string& kind, std::int64_t num_classes,
                                      std::vector<std::int64_t> ids) {
  if (ids.empty()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} was given no target class; name one or more", kind));
  }
  for (const std::int64_t id : ids) {
    if (id >= 0 && id < num_classes) continue;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} was given the target class {}; it has {} classes, counted from 0", kind, id, num_classes));
  }
  return ids;
}

std::vector<std::int64_t> all_ids(const std::string& kind, std::int64_t num_classes) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(checked_class_count(kind, num_classes)));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// Files name the options as Keras does.
std::string members_of(const IoUOptions& options) {
  JsonObject object;
  if (options.ignore_class) {
    object.integer("ignore_class", *options.ignore_class);
  } else {
    object.value("ignore_class", "null");
  }
  return object.boolean("sparse_y_pred", options.sparse_outputs).integer("axis", -1).members();
}

std::string with_sparse_targets(const IoUOptions& options) {
  return JsonObject().boolean("sparse_y_true", options.sparse_targets).append(members_of(options)).members();
}

// The one-hot metrics are the others with `sparse_targets` fixed. Keras leaves it out of their configuration.
IoUOptions with_rows_as_targets(const OneHotIoUOptions& options) {
  return {.ignore_class = options.ignore_class,
          .sparse_targets = false,
          .sparse_outputs = options.sparse_outputs,
          .name = options.name};
}

// 1 at the class whose number x is, along a new last axis. A number of no class gives zeros.
Value rows_of_numbers(const Value& x, std::int64_t num_classes) {
  std::vector<std::int64_t> extents = x.shape().extents();
  extents.push_back(1);
  return equal(reshape(x, extents), counted(x, num_classes));
}

Value rows_of(const std::string& name, const char* what, const Value& x, std::int64_t num_classes, bool is_sparse) {
  if (is_sparse) return rows_of_numbers(x, num_classes);
  // A row with a NaN has no first largest element, so its position is not counted.
  if (x.shape().rank() > 0 && x.shape().extents().back() == num_classes) return first_largest(x);
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{} has {} classes, and its {} have the shape {}; their last axis has an element for each class, "
                  "unless they are class numbers",
                  name, num_classes, what, x.shape().to_string()));
}

}  // namespace

IoUMetric::IoUMetric(const std::string& kind, std::int64_t num_classes, std::vector<std::int64_t> target_class_ids,
                     const IoUOptions& options, const std::string& members)
    : BuiltInMetric(kind, options.name, members),
      num_classes_(checked_class_count(kind, num_classes)),
      target_class_ids_(checked_ids(kind, num_classes, std::move(target_class_ids))),
      options_(options) {}

std::vector<Value> IoUMetric::sums(const Value& outputs, const Value& targets) const {
  const Value predicted = rows_of(name(), "outputs", outputs, num_classes_, options_.sparse_outputs);
  return sums_of_rows(predicted, rows_of(name(), "targets", targets, num_classes_, options_.sparse_targets));
}

std::vector<Value> IoUMetric::sums_of_rows(const Value& outputs, const Value& targets) const {
  if (outputs.shape() != targets.shape()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} compares outputs of {} with targets of {}, both with their classes last; give each "
                            "position a target",
                            name(), outputs.shape().to_string(), targets.shape().to_string()));
  }
  // A row of zeros has no class, so the sum of a row says whether it has one. Only pairs of classes count.
  Value counts = holdfast::sum(outputs, {-1}, ReducedAxes::keep) * holdfast::sum(targets, {-1}, ReducedAxes::keep);
  // An ignored number that is not a class needs no mask: its row has zeros alone, and such a row is not counted.
  if (options_.ignore_class && *options_.ignore_class >= 0 && *options_.ignore_class < num_classes_) {
    counts = counts - counts * element_of_last_axis(targets, *options_.ignore_class);
  }
  // The first is the diagonal of the confusion matrix.
  // Both are rows of zeros and a one, so a product is 1 where both have the class.
  const Value counted_outputs = outputs * counts, counted_targets = targets * counts;
  return {counted_outputs * targets, counted_outputs, counted_targets};
}

double IoUMetric::result(std::span<const double> sums, double) const {
  constexpr double kRoundingShare = 1e-7, kLeast = 1e-9;  // those of Keras
  const auto classes = static_cast<std::size_t>(num_classes_);
  double shares = 0, found = 0;
  for (const std::int64_t id : target_class_ids_) {
    // The sums are three arrays by class: both, outputs, targets.
    const auto place = static_cast<std::size_t>(id);
    const double both = sums[place];
    const double either = sums[classes + place] + sums[2 * classes + place] - both;
    // A class that does not occur would pull the mean down.
    if (either <= kLeast) continue;
    shares += both / (either + kRoundingShare);
    ++found;
  }
  return shares / (found + kRoundingShare);
}

IoU::IoU(std::int64_t num_classes, const std::vector<std::int64_t>& target_class_ids, const IoUOptions& options)
    : IoUMetric("io_u", num_classes, target_class_ids, options,
                JsonObject()
                    .integer("num_classes", num_classes)
                    .integers("target_class_ids", target_class_ids)
                    .append(with_sparse_targets(options))
                    .members()) {}

MeanIoU::MeanIoU(std::int64_t num_classes, const IoUOptions& options)
    : IoUMetric("mean_io_u", num_classes, all_ids("mean_io_u", num_classes), options,
                JsonObject().integer("num_classes", num_classes).append(with_sparse_targets(options)).members()) {}

OneHotIoU::OneHotIoU(std::int64_t num_classes, const std::vector<std::int64_t>& target_class_ids,
                     const OneHotIoUOptions& options)
    : IoUMetric("one_hot_io_u", num_classes, target_class_ids, with_rows_as_targets(options),
                JsonObject()
                    .integer("num_classes", num_classes)
                    .integers("target_class_ids", target_class_ids)
                    .append(members_of(with_rows_as_targets(options)))
                    .members()) {}

OneHotMeanIoU::OneHotMeanIoU(std::int64_t num_classes, const OneHotIoUOptions& options)
    : IoUMetric("one_hot_mean_io_u", num_classes, all_ids("one_hot_mean_io_u", num_classes),
                with_rows_as_targets(options),
                JsonObject()
                    .integer("num_classes", num_classes)
                    .append(members_of(with_rows_as_targets(options)))
                    .members()) {}

BinaryIoU::BinaryIoU(const BinaryIoUOptions& options)
    : IoUMetric("binary_io_u", 2, options.target_class_ids, {.name = options.name},
                JsonObject()
                    .integers("target_class_ids", options.target_class_ids)
                    .number("threshold", checked_threshold("binary_io_u", options.threshold))
                    .members()),
      threshold_(options.threshold) {}

std::vector<Value> BinaryIoU::sums(const Value& outputs, const Value& targets) const {
  // A NaN does not equal itself.
  const Value is_one = (1.0F - less(outputs, threshold_)) * equal(outputs, outputs);
  return sums_of_rows(rows_of_numbers(is_one, 2), rows_of_numbers(targets, 2));
}

}  // namespace holdfast::metrics
