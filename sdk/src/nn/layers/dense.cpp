#include "holdfast/nn/dense.h"

#include "holdfast/base/error.h"
#include "nn/graph/config.h"
#include "nn/graph/kernel.h"
#include "nn/layers/kernel_and_bias.h"
#include "nn/operations/checks.h"
#include "nn/operations/operations.h"

namespace holdfast {

Dense::Dense(std::int64_t units, const DenseOptions& options)
    : LayerOf(options.name), units_(units), options_(options) {
  check_extent("Dense", "units", units);
}

std::vector<Value> Dense::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  if (input.shape().rank() == 0) {
    throw Error(ErrorCode::invalid_argument,
                "it needs an input [..., features]; a Reshape layer before it can make [1] of one number");
  }
  // The layer multiplies along the last axis, as in Keras, and treats all positions alike.
  const std::int64_t features = last_extent(input.shape());
  // The kernel comes first among the parameters, as in Keras. Files and the draws of initial weights rely on the order.
  const KernelAndBias weights = kernel_and_bias(builder, {features, units_}, {.in = features, .out = units_}, options_);
  // The activation is an operation of its own, so any function may follow.
  return {options_.activation(dense(input, weights.kernel, weights.bias))};
}

// Files and savepoints hold this text, and a resume compares it. So its keys and their order are data.
void Dense::write_config(ConfigWriter& config) const {
  config.integer("units", units_);
  config.text("activation", options_.activation.name());
  config.boolean("use_bias", options_.use_bias);
  config.text("kernel_initializer", options_.kernel_initializer.name());
  config.text("bias_initializer", options_.bias_initializer.name());
  write_limits_of_kernel_and_bias(config, options_);
}

std::shared_ptr<const Layer> Dense::from_config(const std::string& name, ConfigReader& config) {
  const DenseOptions options = {.activation = ActivationFunction::from_name(config.text("activation")),
                                .use_bias = config.boolean("use_bias"),
                                .kernel_initializer = Initializer::from_name(config.text("kernel_initializer")),
                                .bias_initializer = Initializer::from_name(config.text("bias_initializer")),
                                .kernel_regularizer = read_regularizer(config, "kernel_regularizer"),
                                .bias_regularizer = read_regularizer(config, "bias_regularizer"),
                                .kernel_constraint = read_constraint(config, "kernel_constraint"),
                                .bias_constraint = read_constraint(config, "bias_constraint"),
                                .name = name};
  return std::make_shared<const Dense>(config.integer("units"), options);
}

}  // namespace holdfast
