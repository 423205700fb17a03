#include "holdfast/nn/mean_squared_error.h"

#include "compute/cpu/kernels/vector_kernels.h"
#include "compute/device_kernels.h"
#include "core/json_object.h"
#include "nn/program/sample_rows.h"

namespace holdfast {
std::string MeanSquaredError::name() const {
  return "mean_squared_error";
}

std::string MeanSquaredError::configuration() const {
  return JsonObject("mean_squared_error").text();
}

std::unique_ptr<Loss> MeanSquaredError::clone() const {
  return std::make_unique<MeanSquaredError>(*this);
}

// A broadcast of targets would hide a missing axis, so both have one shape.
Shape MeanSquaredError::target_shape(const Shape& output) const {
  return output;
}

float MeanSquaredError::evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples,
                                 float scale, std::span<float> gradient) const {
  const SampleRows rows = rows_with_equal_targets(*this, outputs, targets, samples);
  check_gradient(*this, rows, gradient);
  // Without rows the number of elements is 0, by which nothing can be divided.
  if (rows.count == 0) return 0;
  const auto elements = static_cast<double>(rows.output_elements);
  // The slope of d^2 / n is 2 d / n.
  const double sum = compute::vector_kernels().squared_error(
      outputs.data(), targets.data(), static_cast<std::int64_t>(outputs.size()),
      static_cast<float>(2.0 * scale / elements), gradient.empty() ? nullptr : gradient.data());
  return static_cast<float>(sum / elements);
}

bool MeanSquaredError::describe_kernel(compute::LossShape& kernel) const {
  // Devices compute with the same formulas (compute/arithmetic/crossentropy.h).
  kernel.kind = compute::LossKind::mean_squared_error;
  return true;
}

}  // namespace holdfast
