#include "holdfast/nn/dropout.h"

#include "holdfast/base/error.h"
#include "nn/config.h"
#include "nn/model_stage_builder.h"

namespace holdfast {

namespace {

class DropoutStage : public ModelStage {
 public:
  DropoutStage(std::unique_ptr<compute::DropoutOperation> operation, std::size_t layer_index)
      : operation_(std::move(operation)), layer_index_(layer_index) {}

  void forward(const ForwardPass& pass, const float* input, float* output) override {
    // Each dropout layer of each step draws a sequence of its own; a model has no more than kMaximumLayers layers.
    const std::uint64_t major = static_cast<std::uint64_t>(pass.draws.step) * Sequential::kMaximumLayers + layer_index_;
    const auto first_sample = static_cast<std::uint64_t>(pass.draws.first_sample);
    operation_->forward({.seed = pass.draws.seed, .major = major, .first_sample = first_sample}, input, output);
  }

  void backward(const BackwardPass&, const ModelStageGradient& arrays) override {
    operation_->backward(arrays.output_gradient, arrays.input_gradient);
  }

 private:
  std::unique_ptr<compute::DropoutOperation> operation_;
  const std::size_t layer_index_;
};

}  // namespace

Dropout::Dropout(float rate, const DropoutOptions& options) : Layer(options.name), rate_(rate) {
  if (rate >= 0 && rate < 1) return;
  throw Error(ErrorCode::invalid_argument, "Dropout needs a rate from 0 to below 1, not " + std::to_string(rate));
}

Shape Dropout::output_shape(const Shape& input) const {
  return input;
}

void Dropout::add_stages(ModelStageBuilder& builder) const {
  if (!builder.is_training() || rate_ == 0) return;
  auto operation = builder.backend().dropout(
      {.samples = builder.samples(), .elements = builder.input_shape().element_count(), .rate = rate_});
  builder.add(std::make_unique<DropoutStage>(std::move(operation), builder.layer_index()),
              {.may_overwrite_input = true});
}

void Dropout::write_config(ConfigWriter& config) const {
  config.number("rate", rate_);
}

std::shared_ptr<const Layer> Dropout::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const Dropout>(config.number("rate"), DropoutOptions{.name = name});
}

}  // namespace holdfast
