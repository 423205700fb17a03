#include "holdfast/nn/categorical_accuracy.h"

#include <utility>

#include "compute/device_kernels.h"
#include "core/json_text.h"
#include "nn/losses/sample_rows.h"

namespace holdfast {
CategoricalAccuracy::CategoricalAccuracy(MetricOptions options)
    : Metric(options.name.empty() ? "categorical_accuracy" : std::move(options.name)) {}

std::string CategoricalAccuracy::configuration() const {
  return R"({"kind":"categorical_accuracy","name":)" + json_string(name()) + "}";
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

void CategoricalAccuracy::sum_on(compute::DeviceKernels& device, const DeviceBatch& batch) const {
  device.metric(
      {.kind = compute::MetricKind::categorical_accuracy, .samples = batch.samples, .outputs = batch.output_elements},
      batch.outputs, batch.targets, batch.sum);
}

}  // namespace holdfast
