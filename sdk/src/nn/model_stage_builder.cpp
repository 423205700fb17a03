#include "nn/model_stage_builder.h"

namespace holdfast {

namespace {

class ActivationStage : public ModelStage {
 public:
  ActivationStage(std::unique_ptr<compute::ActivationOperation> operation, Activation activation)
      : operation_(std::move(operation)), keeps_output_(compute::is_differentiated_by_output(activation)) {}

  void forward(const ForwardPass&, const float* input, float* output) override { operation_->forward(input, output); }

  void backward(const BackwardPass&, const ModelStageGradient& arrays) override {
    operation_->backward(keeps_output_ ? arrays.output : arrays.input, arrays.output_gradient, arrays.input_gradient);
  }

 private:
  std::unique_ptr<compute::ActivationOperation> operation_;
  const bool keeps_output_;
};

}  // namespace

std::vector<BuiltModelStage> ModelStageBuilder::build() {
  elements_ = model_.input_shape().with_batch(samples()).element_count();
  for (layer_index_ = 0; layer_index_ < model_.layers().size(); ++layer_index_) {
    layer().layer->add_stages(*this);
    contribution_offset_ += layer().layer->contribution_count(input_shape());
  }
  return std::move(stages_);
}

std::size_t ModelStageBuilder::parameter_offset(std::size_t parameter) const {
  return model_.parameters().entries()[layer().first_parameter + parameter].offset;
}

std::size_t ModelStageBuilder::buffer_offset(std::size_t buffer) const {
  return model_.buffers().entries()[layer().first_buffer + buffer].offset;
}

void ModelStageBuilder::add(std::unique_ptr<ModelStage> stage, const ModelStageTraits& traits) {
  const std::int64_t output_elements = output_shape().with_batch(samples()).element_count();
  const std::size_t parameters_begin = traits.has_parameters ? parameter_offset(0) : 0;
  stages_.push_back({std::move(stage), traits, elements_, output_elements, parameters_begin});
  elements_ = output_elements;
  has_parameters_ = has_parameters_ || traits.has_parameters;
}

void ModelStageBuilder::add_activation(Activation activation) {
  if (activation == Activation::linear) return;
  auto operation = backend_.activation({.activation = activation,
                                        .rows = samples() * leading_elements(output_shape()),
                                        .channels = last_extent(output_shape())},
                                       use());
  const bool keeps_output = compute::is_differentiated_by_output(activation);
  add(std::make_unique<ActivationStage>(std::move(operation), activation),
      {.may_overwrite_input = keeps_output, .needs_output = keeps_output});
}

std::int64_t last_extent(const Shape& shape) {
  return shape[shape.rank() - 1];
}

std::int64_t leading_elements(const Shape& shape) {
  return shape.element_count() / last_extent(shape);
}

}  // namespace holdfast
