#include "holdfast/nn/binary_crossentropy.h"

#include <cmath>

#include "compute/device_kernels.h"
#include "nn/sample_rows.h"
#include "nn/softmax_row.h"

namespace holdfast {
namespace {

struct ElementLoss {
  double loss;
  float gradient;
};

// max(x, 0) - x t + log(1 + exp(-|x|)) equals -t log(s) - (1 - t) log(1 - s), s = sigmoid(x), without overflow.
ElementLoss evaluate_logit(float x, float target) {
  const double decay = std::exp(-std::abs(static_cast<double>(x)));
  const double sigmoid = (x >= 0 ? 1.0 : decay) / (1.0 + decay);
  return {.loss = std::fmax(x, 0.0) - static_cast<double>(x) * target + std::log1p(decay),
          .gradient = static_cast<float>(sigmoid - target)};
}

ElementLoss evaluate_probability(float output, float target) {
  const ClippedProbability p = clip_probability(output);
  const double yes = p.value;
  const double no = 1.0 - yes;
  return {.loss = -(target * std::log(yes) + (1.0 - target) * std::log(no)),
          .gradient = p.is_clipped ? 0.0F : static_cast<float>((yes - target) / (yes * no))};
}

}  // namespace

std::string BinaryCrossentropy::name() const {
  return "binary_crossentropy";
}

std::string BinaryCrossentropy::configuration() const {
  return std::string(R"({"kind":"binary_crossentropy","from_logits":)") + (options_.from_logits ? "true}" : "false}");
}

std::unique_ptr<Loss> BinaryCrossentropy::clone() const {
  return std::make_unique<BinaryCrossentropy>(*this);
}

Shape BinaryCrossentropy::target_shape(const Shape& output) const {
  return output;
}

float BinaryCrossentropy::evaluate(std::span<const float> outputs, std::span<const float> targets, std::int64_t samples,
                                   float scale, std::span<float> gradient) const {
  const SampleRows rows = rows_with_equal_targets(name(), outputs, targets, samples);
  check_gradient(name(), rows, gradient);
  const auto evaluate_element = options_.from_logits ? evaluate_logit : evaluate_probability;
  const float factor = scale / static_cast<float>(rows.output_elements);
  double sum = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ElementLoss element = evaluate_element(outputs[i], targets[i]);
    sum += element.loss;
    if (!gradient.empty()) gradient[i] = factor * element.gradient;
  }
  return rows.count == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(rows.output_elements));
}

void BinaryCrossentropy::evaluate_on(compute::DeviceKernels& device, const DeviceBatch& batch, float scale,
                                     float* gradient) const {
  device.loss({.kind = compute::LossKind::binary_crossentropy,
               .from_logits = options_.from_logits,
               .samples = batch.samples,
               .outputs = batch.output_elements},
              batch.outputs, batch.targets, scale, gradient, batch.sum);
}

}  // namespace holdfast
