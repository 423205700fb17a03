#include "holdfast/nn/activation_function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "holdfast/nn/activation_layer.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/sequential.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/function_layer.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

const ActivationFunction kEach[] = {
    Activation::linear,
    Activation::softmax,
    ActivationFunction::relu({.max_value = 2, .negative_slope = 0.25F, .threshold = 0.5F}),
    ActivationFunction::relu({.negative_slope = 0.25F}),
    ActivationFunction::relu6(),
    ActivationFunction::leaky_relu(),
    ActivationFunction::elu(),
    ActivationFunction::selu(),
    ActivationFunction::celu(2),
    ActivationFunction::gelu(),
    ActivationFunction::gelu_tanh(),
    ActivationFunction::silu(),
    ActivationFunction::softplus(),
    ActivationFunction::softsign(),
    ActivationFunction::hard_sigmoid(),
    ActivationFunction::hard_silu(),
    ActivationFunction::hard_tanh(),
    ActivationFunction::tanh_shrink(),
    ActivationFunction::soft_shrink(),
    ActivationFunction::hard_shrink(),
    ActivationFunction::exponential(),
    ActivationFunction::log_sigmoid(),
    ActivationFunction::mish(),
    ActivationFunction::log_softmax(),
};

TEST(ActivationFunction, IsFoundByItsName) {
  for (const ActivationFunction& function : kEach) {
    EXPECT_EQ(ActivationFunction::from_name(function.name()), function) << function.name();
  }
  EXPECT_EQ(ActivationFunction::elu(0.5F).name(), "elu(0.5)");
  EXPECT_EQ(ActivationFunction::relu({.negative_slope = 0.25F}).name(), "relu(0.25,none,0)");
  EXPECT_EQ(ActivationFunction::relu(), Activation::relu);
  EXPECT_EQ(ActivationFunction::from_name("elu"), ActivationFunction::elu());
  EXPECT_EQ(ActivationFunction::from_name("swish"), ActivationFunction::silu());
  EXPECT_EQ(ActivationFunction::from_name("hard_swish"), ActivationFunction::hard_silu());
}

TEST(ActivationFunction, RefusesNamesThatItDoesNotGive) {
  for (const std::string name : {"", "Elu", "elu(", "elu()", "elu(1", "elu(1)x", "elu(1,2)", "elu(1,)", "elu(x)",
                                 "elu(none)", "selu(1)", "relu(1)", "celu(0)", "soft_shrink(-1)", "relu(nan,none,0)"}) {
    EXPECT_NE(refusal([&] { ActivationFunction::from_name(name); }), "") << name;
  }
  EXPECT_THAT(refusal([] { ActivationFunction::from_name("swoosh"); }),
              HasSubstr("\"swoosh\" is not an activation; choose one of linear, relu, tanh"));
}

TEST(ActivationFunction, RefusesNumbersThatItCannotTake) {
  EXPECT_THAT(refusal([] { ActivationFunction::relu({.max_value = -1}); }),
              HasSubstr("max_value of at least 0, not -1"));
  EXPECT_THAT(refusal([] { ActivationFunction::relu({.threshold = -1}); }), HasSubstr("finite number of at least 0"));
  EXPECT_THAT(refusal([] { ActivationFunction::elu(NAN); }), HasSubstr("elu needs a finite number, not nan"));
  EXPECT_THAT(refusal([] { ActivationFunction::celu(0); }), HasSubstr("celu needs an alpha other than 0"));
  EXPECT_THAT(refusal([] { ActivationFunction::hard_shrink(-1); }), HasSubstr("of at least 0, not -1"));
}

// Outputs and slopes at huge arguments, where an exponential that is not used would be infinite.
TEST(ActivationFunction, StaysFiniteFarFromZero) {
  for (const ActivationFunction& function : kEach) {
    if (function == ActivationFunction::exponential()) continue;
    const Sequential model{Input{4}, FunctionLayer([&](const Value& x) { return function(x); })};
    const Floats features = {-1e4F, -200, 200, 1e4F}, ones(4, 1.0F);
    Floats parameters(model.parameters().float_count()), gradients(parameters.size());
    ModelProgram program(model, 1);

    const auto outputs = program.forward_training(features, 1, parameters, {});
    for (const float output : outputs) EXPECT_TRUE(std::isfinite(output)) << function.name();
    program.backward(ones, parameters, gradients, {});
    for (const float gradient : gradients) EXPECT_TRUE(std::isfinite(gradient)) << function.name();
  }
}

TEST(ActivationFunction, IsAnOptionAndALayerThatFilesKeep) {
  const Sequential model{Input{3}, Dense{4, {.activation = ActivationFunction::elu(0.5F)}},
                         ActivationLayer{ActivationFunction::hard_tanh()}};

  EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
  EXPECT_THAT(model.graph(), HasSubstr("\"activation\":\"elu(0.5)\""));
}

TEST(ActivationFunction, TellsLossesWhatMadeTheOutputIfItIsOfTheEnumeration) {
  EXPECT_EQ((Sequential{Input{3}, Dense{4, {.activation = Activation::softmax}}}.output_activation()),
            Activation::softmax);
  EXPECT_EQ((Sequential{Input{3}, Dense{4, {.activation = ActivationFunction::mish()}}}.output_activation()),
            std::nullopt);
}

}  // namespace
}  // namespace holdfast
