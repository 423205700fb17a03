#include "holdfast/nn/batch_normalization.h"

#include <cmath>

#include "compute/arithmetic/optimizers.h"
#include "compute/device_kernels.h"
#include "holdfast/base/error.h"
#include "nn/config.h"
#include "nn/model_stage_builder.h"

namespace holdfast {

namespace {

struct Offsets {
  std::size_t gamma = 0;
  std::size_t beta = 0;
  std::size_t moving_mean = 0;
  std::size_t moving_variance = 0;
  std::size_t contributions = 0;
};

class BatchNormalizationStage : public ModelStage {
 public:
  BatchNormalizationStage(std::unique_ptr<compute::BatchNormalizationOperation> operation, const Offsets& offsets)
      : operation_(std::move(operation)), offsets_(offsets) {}

  void forward(const ForwardPass& pass, const float* input, float* output) override {
    const float* const gamma = pass.parameters + offsets_.gamma;
    const float* const beta = pass.parameters + offsets_.beta;
    if (pass.buffers == nullptr) return operation_->forward_training(input, gamma, beta, output);
    operation_->forward_inference(input, gamma, beta, pass.buffers + offsets_.moving_mean,
                                  pass.buffers + offsets_.moving_variance, output);
  }

  void contribute(float* contributions) override { operation_->contribute(contributions + offsets_.contributions); }

  void backward(const BackwardPass& pass, const ModelStageGradient& arrays) override {
    operation_->backward(arrays.input, pass.parameters + offsets_.gamma, arrays.output_gradient, arrays.input_gradient,
                         pass.gradients + offsets_.gamma, pass.gradients + offsets_.beta);
  }

 private:
  std::unique_ptr<compute::BatchNormalizationOperation> operation_;
  const Offsets offsets_;
};

WeightDescription per_channel(const std::string& name, const Shape& input, const Initializer& initializer) {
  const std::int64_t channels = last_extent(input);
  return {.name = name, .shape = {channels}, .initializer = initializer, .fan_in = channels, .fan_out = channels};
}

}  // namespace

BatchNormalization::BatchNormalization(const BatchNormalizationOptions& options)
    : Layer(options.name), momentum_(options.momentum), epsilon_(options.epsilon) {
  if (!(momentum_ >= 0 && momentum_ <= 1)) {
    throw Error(ErrorCode::invalid_argument,
                "BatchNormalization needs a momentum from 0 to 1, not " + std::to_string(momentum_));
  }
  if (!(epsilon_ > 0 && std::isfinite(epsilon_))) {
    throw Error(ErrorCode::invalid_argument,
                "BatchNormalization needs a finite epsilon above 0, not " + std::to_string(epsilon_));
  }
}

Shape BatchNormalization::output_shape(const Shape& input) const {
  return input;
}

std::vector<WeightDescription> BatchNormalization::parameters(const Shape& input) const {
  return {per_channel("gamma", input, Initializer::ones()), per_channel("beta", input, Initializer::zeros())};
}

std::vector<WeightDescription> BatchNormalization::buffers(const Shape& input) const {
  return {per_channel("moving_mean", input, Initializer::zeros()),
          per_channel("moving_variance", input, Initializer::ones())};
}

std::size_t BatchNormalization::contribution_count(const Shape& input) const {
  return 2 * static_cast<std::size_t>(last_extent(input)) + 1;
}

void BatchNormalization::update_buffers(std::span<const float> contributions,
                                        std::span<const std::span<float>> buffers) const {
  const float count = contributions.back();
  if (count == 0) return;
  const float* sum = contributions.data();
  for (const std::span<float> moving : buffers) {
    for (float& value : moving) value = compute::moving_average(value, momentum_, *sum++, count);
  }
}

void BatchNormalization::update_buffers_on(compute::DeviceKernels& device, const float* contributions,
                                           std::span<const std::span<float>> buffers) const {
  const std::size_t channels = buffers.front().size();
  const float* const count = contributions + 2 * channels;
  for (const std::span<float> moving : buffers) {
    device.update_moving(contributions, count, channels, momentum_, moving.data());
    contributions += channels;
  }
}

void BatchNormalization::add_stages(ModelStageBuilder& builder) const {
  const std::int64_t rows = builder.samples() * leading_elements(builder.input_shape());
  auto operation = builder.backend().batch_normalization(
      {.rows = rows, .channels = last_extent(builder.input_shape()), .epsilon = epsilon_}, builder.use());
  const Offsets offsets = {.gamma = builder.parameter_offset(0),
                           .beta = builder.parameter_offset(1),
                           .moving_mean = builder.buffer_offset(0),
                           .moving_variance = builder.buffer_offset(1),
                           .contributions = builder.contribution_offset()};
  builder.add(std::make_unique<BatchNormalizationStage>(std::move(operation), offsets), {.has_parameters = true});
}

void BatchNormalization::write_config(ConfigWriter& config) const {
  config.number("momentum", momentum_);
  config.number("epsilon", epsilon_);
}

std::shared_ptr<const Layer> BatchNormalization::from_config(const std::string& name, ConfigReader& config) {
  const float momentum = config.number("momentum");
  const float epsilon = config.number("epsilon");
  return std::make_shared<const BatchNormalization>(
      BatchNormalizationOptions{.momentum = momentum, .epsilon = epsilon, .name = name});
}

}  // namespace holdfast
