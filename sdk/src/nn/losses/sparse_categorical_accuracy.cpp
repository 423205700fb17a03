#include "holdfast/nn/sparse_categorical_accuracy.h"

#include <utility>

#include "compute/device_kernels.h"
#include "core/json_object.h"
#include "core/json_text.h"
#include "nn/losses/softmax_row.h"
#include "nn/program/sample_rows.h"

namespace holdfast {
SparseCategoricalAccuracy::SparseCategoricalAccuracy(MetricOptions options)
    : Metric(options.name.empty() ? "sparse_categorical_accuracy" : std::move(options.name)) {}

std::string SparseCategoricalAccuracy::configuration() const {
  return JsonObject("sparse_categorical_accuracy").value("name", json_string(name())).text();
}

std::unique_ptr<Metric> SparseCategoricalAccuracy::clone() const {
  return std::make_unique<SparseCategoricalAccuracy>(*this);
}

float SparseCategoricalAccuracy::sum(std::span<const float> outputs, std::span<const float> targets,
                                     std::int64_t samples) const {
  // A label that is not a class matches none and counts as a miss. The loss refuses such labels.
  const SampleRows rows = rows_with_scalar_targets(*this, outputs, targets, samples);
  std::int64_t hits = 0;
  for (std::size_t row = 0; row < rows.count; ++row) {
    // Labels are floats, which hold whole numbers up to 2^24 exactly.
    hits += static_cast<float>(index_of_largest(rows.output(row))) == targets[row];
  }
  return static_cast<float>(hits);
}

// Each position before the axis of classes is a row for sum(), and may have a weight of its own.
std::size_t SparseCategoricalAccuracy::position_axes(const Shape& output) const {
  return axes_before_classes(output);
}

bool SparseCategoricalAccuracy::describe_kernel(compute::MetricShape& kernel) const {
  kernel.kind = compute::MetricKind::sparse_categorical_accuracy;
  return true;
}

}  // namespace holdfast
