#include "holdfast/nn/binary_accuracy.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "compute/device_kernels.h"
#include "core/json_object.h"
#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "nn/program/sample_rows.h"

namespace holdfast {
BinaryAccuracy::BinaryAccuracy(BinaryAccuracyOptions options)
    : Metric(options.name.empty() ? "binary_accuracy" : std::move(options.name)), threshold_(options.threshold) {
  // No output lies above a NaN, so each would count as 0 without an error. An infinity leaves no choice either.
  if (!std::isfinite(threshold_)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the threshold of \"{}\" must be finite, but is {}", this->name(), threshold_));
  }
}

std::string BinaryAccuracy::configuration() const {
  // The members have one order, so that equal metrics have equal texts. json_number() gives each threshold one text.
  return JsonObject("binary_accuracy").number("threshold", threshold_).value("name", json_string(name())).text();
}

std::unique_ptr<Metric> BinaryAccuracy::clone() const {
  return std::make_unique<BinaryAccuracy>(*this);
}

float BinaryAccuracy::sum(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples) const {
  const SampleRows rows = rows_with_equal_targets(*this, outputs, targets, samples);
  if (rows.count == 0) return 0;
  // Hits are whole numbers, so their sum is exact in any order.
  std::int64_t hits = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) hits += targets[i] == (outputs[i] > threshold_ ? 1.0F : 0.0F);
  // Each sample counts with the share of its elements that are right.
  return static_cast<float>(static_cast<double>(hits) / static_cast<double>(rows.output_elements));
}

bool BinaryAccuracy::describe_kernel(compute::MetricShape& kernel) const {
  kernel.kind = compute::MetricKind::binary_accuracy;
  kernel.threshold = threshold_;
  return true;
}

}  // namespace holdfast
