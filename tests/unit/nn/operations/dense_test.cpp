#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "holdfast/nn/dense.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer.h"
#include "holdfast/nn/layer_builder.h"
#include "holdfast/nn/sequential.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/random_model.h"

namespace holdfast {

// Declared here: nn/operations/operations.h has a second reshape(), which would make calls of other tests ambiguous.
Value dense(const Value& input, const Value& kernel, const std::optional<Value>& bias);

namespace {

// x w + b, of which one of w and b is not trained.
class HalfTrainedDense final : public LayerOf<HalfTrainedDense> {
 public:
  explicit HalfTrainedDense(bool trains_kernel) : LayerOf(""), trains_kernel_(trains_kernel) {}
  std::string_view kind() const override { return "test.HalfTrainedDense"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override {
    const Value kernel = builder.parameter("kernel", {6, 6}, Initializer::glorot_uniform(), {.in = 6, .out = 6});
    const Value bias = builder.parameter("bias", {6}, Initializer::zeros(), {.in = 6, .out = 6});
    return {trains_kernel_ ? dense(inputs[0], kernel, stop_gradient(bias))
                           : dense(inputs[0], stop_gradient(kernel), bias)};
  }
  void write_config(ConfigWriter&) const override {}

 private:
  const bool trains_kernel_;
};

// The gradients that are wanted are those of a layer that trains both, and no memory of another array is written.
TEST(DenseOperation, GivesTheGradientOfOneOfKernelAndBiasAlone) {
  const Sequential both{Input{6}, Dense{6}};
  const random_models::Result expected = random_models::train(both, 3);
  const std::size_t kernel_floats = both.parameters().entries()[1].offset;
  for (const bool trains_kernel : {true, false}) {
    const Sequential model{Input{6}, HalfTrainedDense(trains_kernel)};

    const random_models::Result result = random_models::train(model, 3);

    for (std::size_t i = 0; i < expected.gradients.size(); ++i) {
      const bool is_wanted = (i < kernel_floats) == trains_kernel;
      EXPECT_EQ(result.gradients[i], is_wanted ? expected.gradients[i] : 0.0F) << i;
    }
    EXPECT_TRUE(result == random_models::train(model, 3, random_models::kApart));
  }
}

}  // namespace
}  // namespace holdfast
