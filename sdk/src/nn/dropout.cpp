#include "holdfast/nn/dropout.h"

#include "holdfast/base/error.h"
#include "nn/config.h"
#include "nn/model_stage_builder.h"

namespace holdfast {

namespace {

class DropoutStage : public ModelStage {
 public:
  explicit DropoutStage(std::unique_ptr<compute::DropoutOperation> operation) : operation_(std::move(operation)) {}

  void forward(const ForwardPass&, const float* input, float* output) override { operation_->forward(input, output); }

  void backward(const BackwardPass&, const ModelStageGradient& arrays) override {
    operation_->backward(arrays.output_gradient, arrays.input_gradient);
  }

 private:
  std::unique_ptr<compute::DropoutOperation> operation_;
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
  // Each dropout layer of each step draws a sequence of its own; a model has no more than kMaximumLayers layers.
  auto operation = builder.backend().dropout({.samples = builder.samples(),
                                              .elements = builder.input_shape().element_count(),
                                              .rate = rate_,
                                              .sequences_per_step = Sequential::kMaximumLayers,
                                              .sequence = builder.layer_index()});
  builder.add(std::make_unique<DropoutStage>(std::move(operation)), {.may_overwrite_input = true});
}

void Dropout::write_config(ConfigWriter& config) const {
  config.number("rate", rate_);
}

std::shared_ptr<const Layer> Dropout::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const Dropout>(config.number("rate"), DropoutOptions{.name = name});
}

}  // namespace holdfast
