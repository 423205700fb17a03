#include "holdfast/nn/categorical_accuracy.h"

#include <utility>

#include "compute/device_kernels.h"
#include "core/json_object.h"
#include "core/json_text.h"
#include "nn/losses/softmax_row.h"
#include "nn/program/sample_rows.h"

namespace holdfast {
CategoricalAccuracy::CategoricalAccuracy(MetricOptions options)
    : Metric(options.name.empty() ? "categorical_accuracy" : std::move(options.name)) {}

std::string CategoricalAccuracy::configuration() const {
  return JsonObject("categorical_accuracy").value("name", json_string(name())).text();
}

std::unique_ptr<Metric> CategoricalAccuracy::clone() const {
  return std::make_unique<CategoricalAccuracy>(*this);
}

float CategoricalAccuracy::sum(std::span<const float> outputs, std::span<const float> targets,
                               std::int64_t samples) const {
  const SampleRows rows = rows_with_equal_targets(*this, outputs, targets, samples);
  // The class of a target is its largest element too, so targets may be shares of classes.
  std::int64_t hits = 0;
  for (std::size_t row = 0; row < rows.count; ++row) {
    hits += index_of_largest(rows.output(row)) == index_of_largest(rows.target(row));
  }
  return static_cast<float>(hits);
}

// Each position before the axis of classes is a row for sum(), and may have a weight of its own.
std::size_t CategoricalAccuracy::position_axes(const Shape& output) const {
  return axes_before_classes(output);
}

// Devices have a kernel for this metric, so that outputs need not be copied to the host.
bool CategoricalAccuracy::describe_kernel(compute::MetricShape& kernel) const {
  kernel.kind = compute::MetricKind::categorical_accuracy;
  return true;
}

}  // namespace holdfast
