#pragma once

// A fully connected layer: output = activation(input x kernel + bias) along the last axis. Axes before
// it stay as they are: [features] becomes [units], and [steps, features] becomes [steps, units], with the same
// weights at each step. Parameters: kernel [inputs, units] and bias [units]. A sample of one number without
// axes is refused when the layer is called; Reshape makes [1] of it. An image [height, width, channels] becomes
// [height, width, units]: Flatten makes one row of it.
//
//   Dense{10}                                                                // 784 inputs: 7,850 parameters
//   Dense{128, {.activation = Activation::relu, .kernel_initializer = Initializer::he_uniform()}}

#include <memory>

#include "holdfast/nn/activation_function.h"
#include "holdfast/nn/constraint.h"
#include "holdfast/nn/layer.h"
#include "holdfast/nn/regularizer.h"

namespace holdfast {

class ConfigReader;

// The defaults of Keras.
struct DenseOptions {
  // Applied to the sums of products and bias.
  ActivationFunction activation = Activation::linear;
  bool use_bias = true;
  // The initial values of the weights; see initializer.h.
  Initializer kernel_initializer = Initializer::glorot_uniform();
  Initializer bias_initializer = Initializer::zeros();
  // Penalties on their size, none by default; see regularizer.h.
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  // Bounds, none by default; see constraint.h.
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};

class Dense final : public LayerOf<Dense> {
 public:
  // Throws Error{invalid_argument} unless `units` is in [1, kMaximumExtent].
  explicit Dense(std::int64_t units, const DenseOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "Dense"; }
  // The activation of the options, whatever the input.
  std::optional<Activation> output_activation(std::optional<Activation>) const override {
    return options_.activation.basic();
  }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::int64_t units_;
  DenseOptions options_;
};

}  // namespace holdfast
