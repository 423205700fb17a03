// Layers that drop parts of what they compute, in training: gradients are those of the pass that dropped. Reference
// cases drop nothing, since Keras draws other masks.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "holdfast/nn/attention.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/model.h"
#include "holdfast/nn/multi_head_attention.h"
#include "holdfast/nn/recurrent_layers.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/function_layer.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

constexpr std::int64_t kDroppedSamples = 3;
constexpr std::int64_t kDroppedSteps = 4;
constexpr std::int64_t kDroppedWidth = 3;

// A layer on an input that is shifted by a parameter, whose gradient is that of the input.
Model on_shifted_input(const std::function<Value(const Value&)>& layer) {
  const Value x = input({kDroppedSteps, kDroppedWidth});
  return {x, layer(FunctionLayer([](const Value& value) { return value; })(x))};
}

class DroppedPass {
 public:
  explicit DroppedPass(const Model& model)
      : program_(model, 1),
        x_(reference::random_values(kDroppedSamples * kDroppedSteps * kDroppedWidth, 1)),
        parameters_(reference::random_values(model.parameters().float_count(), 2)) {
    // Small, so that functions are far from their limits, and their third derivatives small.
    for (float& parameter : parameters_) parameter *= 0.5F;
    output_gradient_ = reference::random_values(forward().size(), 3);
  }

  std::vector<float> gradients() {
    forward();
    std::vector<float> gradients(parameters_.size(), 77.0F), contributions(program_.contribution_count());
    program_.backward(output_gradient_, parameters_, gradients, contributions);
    return gradients;
  }

  // The slope of the sum of outputs times their gradients: central differences of two widths, of which the errors of
  // third order cancel (Richardson, 1911).
  double slope(std::size_t parameter) {
    return (4 * difference(parameter, 0x1p-5F) - difference(parameter, 0x1p-4F)) / 3;
  }

 private:
  std::span<const float> forward() {
    return program_.forward_training(x_, kDroppedSamples, parameters_, {.seed = 5, .step = 2, .first_sample = 10});
  }

  double loss() {
    double sum = 0;
    const std::span<const float> outputs = forward();
    for (std::size_t i = 0; i < outputs.size(); ++i) sum += static_cast<double>(outputs[i]) * output_gradient_[i];
    return sum;
  }

  double difference(std::size_t parameter, float width) {
    const float before = parameters_[parameter];
    parameters_[parameter] = before + width;
    const double above_at = parameters_[parameter], above = loss();
    parameters_[parameter] = before - width;
    const double below_at = parameters_[parameter], below = loss();
    parameters_[parameter] = before;
    return (above - below) / (above_at - below_at);
  }

  ModelProgram program_;
  std::vector<float> x_;
  std::vector<float> parameters_;
  std::vector<float> output_gradient_;
};

template <class Layer>
Model recurrent(RecurrentOptions options) {
  options.return_sequences = true;
  return on_shifted_input([&](const Value& x) { return Layer{2, options}(x); });
}

TEST(DropoutGradients, AreThoseOfThePassThatDropped) {
  const std::vector<Model> models = {
      recurrent<SimpleRNN>({.dropout = 0.5F}),
      recurrent<SimpleRNN>({.recurrent_dropout = 0.5F}),
      recurrent<LSTM>({.dropout = 0.5F}),
      recurrent<LSTM>({.dropout = 0.25F, .recurrent_dropout = 0.5F}),
      recurrent<GRU>({.dropout = 0.5F}),
      recurrent<GRU>({.reset_after = false, .dropout = 0.25F, .recurrent_dropout = 0.5F}),
      on_shifted_input([](const Value& x) {
        return Bidirectional{LSTM{2, {.return_sequences = true, .dropout = 0.5F, .recurrent_dropout = 0.25F}}}(x);
      }),
      on_shifted_input([](const Value& x) { return AdditiveAttention{{.dropout = 0.5F}}(x, tanh(x)); }),
      on_shifted_input([](const Value& x) {
        return MultiHeadAttention{2, 3, {.dropout = 0.5F}}(x);
      }),
      on_shifted_input([](const Value& x) {
        return GroupQueryAttention{2, 4, 2, {.dropout = 0.25F, .use_causal_mask = true}}(x);
      }),
  };
  for (const Model& model : models) {
    DroppedPass pass(model);
    const std::vector<float> gradients = pass.gradients();
    // The loss has at most 48 terms below 2, each with some 20 roundings of 2^-24: about 2e-5, when roundings add up as
    // the root of their number and are divided by twice the width. What the two widths leave, width^4 times a fifth
    // derivative, is as small. A mask that is wrong or missing changes a gradient by a share of itself.
    for (const ArenaEntry& entry : model.parameters().entries()) {
      SCOPED_TRACE(entry.name + " of " + model.graph());
      for (std::size_t i = entry.offset; i < entry.offset + entry.shape.element_count(); ++i) {
        EXPECT_NEAR(gradients[i], pass.slope(i), 2e-4) << i - entry.offset;
      }
    }
  }
}

}  // namespace
}  // namespace holdfast
