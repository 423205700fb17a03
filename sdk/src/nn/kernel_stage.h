#pragma once

// What Dense and Conv2D share: a kernel and perhaps a bias, in this order among the layer's parameters, and a stage on
// an operation that takes them.

#include "nn/model_stage_builder.h"

namespace holdfast {

template <class Operation>
class KernelStage : public ModelStage {
 public:
  struct Offsets {
    std::size_t kernel = 0;
    std::size_t bias = 0;  // unused if the operation has no bias
  };

  KernelStage(std::unique_ptr<Operation> operation, const Offsets& offsets)
      : operation_(std::move(operation)), offsets_(offsets) {}

  void forward(const ForwardPass& pass, const float* input, float* output) override {
    operation_->forward(input, pass.parameters + offsets_.kernel, pass.parameters + offsets_.bias, output);
  }

  void backward(const BackwardPass& pass, const ModelStageGradient& arrays) override {
    operation_->backward_weights(arrays.input, arrays.output_gradient, pass.gradients + offsets_.kernel,
                                 pass.gradients + offsets_.bias);
    if (arrays.input_gradient == nullptr) return;
    operation_->backward_input(pass.parameters + offsets_.kernel, arrays.output_gradient, arrays.input_gradient);
  }

 private:
  std::unique_ptr<Operation> operation_;
  const Offsets offsets_;
};

template <class Operation>
void add_kernel_stage(ModelStageBuilder& builder, std::unique_ptr<Operation> operation, const auto& options) {
  const typename KernelStage<Operation>::Offsets offsets = {.kernel = builder.parameter_offset(0),
                                                            .bias = options.use_bias ? builder.parameter_offset(1) : 0};
  builder.add(std::make_unique<KernelStage<Operation>>(std::move(operation), offsets), {.has_parameters = true});
  builder.add_activation(options.activation);
}

struct Fans {
  std::int64_t in = 0;
  std::int64_t out = 0;
};

// The bias has one element for each of the kernel's last axis.
std::vector<WeightDescription> kernel_and_bias(const Shape& kernel, const Fans& fans, const auto& options) {
  std::vector<WeightDescription> parameters = {{"kernel", kernel, options.kernel_initializer, fans.in, fans.out}};
  if (options.use_bias) {
    parameters.push_back({"bias", {last_extent(kernel)}, options.bias_initializer, fans.in, fans.out});
  }
  return parameters;
}

}  // namespace holdfast
