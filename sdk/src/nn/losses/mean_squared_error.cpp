#include "holdfast/nn/mean_squared_error.h"

#include "compute/arithmetic/crossentropy.h"
#include "compute/device_kernels.h"
#include "nn/losses/sample_rows.h"

namespace holdfast {
namespace {

void write_gradient(std::span<const float> outputs, std::span<const float> targets, float factor,
                    std::span<float> gradient) {
  const float* const __restrict output = outputs.data();
  const float* const __restrict target = targets.data();
  float* const __restrict result = gradient.data();
#pragma omp simd
  for (std::size_t i = 0; i < gradient.size(); ++i) result[i] = factor * (output[i] - target[i]);
}

}  // namespace

std::string MeanSquaredError::name() const {
  return "mean_squared_error";
}

std::string MeanSquaredError::configuration() const {
  return R"({"kind":"mean_squared_error"})";
}

std::unique_ptr<Loss> MeanSquaredError::clone() const {
  return std::make_unique<MeanSquaredError>(*this);
}

Shape MeanSquaredError::target_shape(const Shape& output) const {
  return output;
}

float MeanSquaredError::evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples,
                                 float scale, std::span<float> gradient) const {
  const SampleRows rows = rows_with_equal_targets(name(), outputs, targets, samples);
  check_gradient(name(), rows, gradient);
  if (rows.count == 0) return 0;
  const auto elements = static_cast<double>(rows.output_elements);
  write_gradient(outputs, targets, static_cast<float>(2.0 * scale / elements), gradient);
  double sum = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    sum += compute::squared_error(outputs[i], targets[i]).loss;
  }
  return static_cast<float>(sum / elements);
}

void MeanSquaredError::evaluate_on(compute::DeviceKernels& device, const DeviceBatch& batch, float scale,
                                   float* gradient) const {
  device.loss(
      {.kind = compute::LossKind::mean_squared_error, .samples = batch.samples, .outputs = batch.output_elements},
      batch.outputs, batch.targets, scale, gradient, batch.sum);
}

}  // namespace holdfast
