#pragma once

// A layer of a test's own: a function of input + shift, where the shift is a parameter with the shape of a sample. Its
// gradient is that of the input, so that a test of training checks the derivative of the function.

#include <functional>

#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer.h"
#include "holdfast/nn/layer_builder.h"

namespace holdfast {

class FunctionLayer final : public LayerOf<FunctionLayer> {
 public:
  using Function = std::function<Value(const Value& x)>;

  explicit FunctionLayer(Function function) : LayerOf(""), function_(std::move(function)) {}

  std::string_view kind() const override { return "test.FunctionLayer"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override {
    return {function_(inputs[0] + builder.parameter("shift", inputs[0].shape(), Initializer::zeros()))};
  }
  void write_config(ConfigWriter&) const override {}

 private:
  const Function function_;
};

}  // namespace holdfast
