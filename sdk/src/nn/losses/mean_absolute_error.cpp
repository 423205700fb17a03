#include "holdfast/nn/mean_absolute_error.h"

#include <cmath>
#include <utility>

#include "compute/device_kernels.h"
#include "core/json_object.h"
#include "core/json_text.h"
#include "nn/program/sample_rows.h"

namespace holdfast {
MeanAbsoluteError::MeanAbsoluteError(MetricOptions options)
    : Metric(options.name.empty() ? "mean_absolute_error" : std::move(options.name)) {}

std::string MeanAbsoluteError::configuration() const {
  return JsonObject("mean_absolute_error").value("name", json_string(name())).text();
}

std::unique_ptr<Metric> MeanAbsoluteError::clone() const {
  return std::make_unique<MeanAbsoluteError>(*this);
}

float MeanAbsoluteError::sum(std::span<const float> outputs, std::span<const float> targets,
                             std::int64_t samples) const {
  const SampleRows rows = rows_with_equal_targets(*this, outputs, targets, samples);
  if (rows.count == 0) return 0;
  // A float would lose the digits of small differences in the sum of many.
  double total = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) total += std::abs(static_cast<double>(outputs[i]) - targets[i]);
  // Each sample counts with the mean over its elements.
  return static_cast<float>(total / static_cast<double>(rows.output_elements));
}

// The loss of this name has no kernel: it is a function of values (regression_losses.cpp).
bool MeanAbsoluteError::describe_kernel(compute::MetricShape& kernel) const {
  kernel.kind = compute::MetricKind::mean_absolute_error;
  return true;
}

}  // namespace holdfast
