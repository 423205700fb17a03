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

using testing::Each;
using testing::ElementsAre;
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
    ActivationFunction::threshold(0.5F, -1),
    ActivationFunction::squareplus(),
    ActivationFunction::sparse_plus(),
    ActivationFunction::sparse_sigmoid(),
    ActivationFunction::sparsemax(),
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
  for (const std::string name :
       {"", "Elu", "elu(", "elu()", "elu(1", "elu(1)x", "elu(1,2)", "elu(1,)", "elu(x)", "elu(none)", "selu(1)",
        "relu(1)", "celu(0)", "soft_shrink(-1)", "relu(nan,none,0)", "squareplus(0)", "threshold", "threshold(1)"}) {
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
  EXPECT_THAT(refusal([] { ActivationFunction::squareplus(0); }), HasSubstr("squareplus needs a b above 0"));
  EXPECT_THAT(refusal([] { ActivationFunction::threshold(0, NAN); }), HasSubstr("threshold needs a finite number"));
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

// What a function makes of one sample, and the sums of its slopes, one for each input.
struct Computed {
  Floats outputs;
  Floats slopes;
};

Computed computed(const ActivationFunction& function, const Floats& features) {
  const auto count = static_cast<std::int64_t>(features.size());
  const Sequential model{Input{count}, FunctionLayer([&](const Value& x) { return function(x); })};
  Floats parameters(model.parameters().float_count()), gradients(parameters.size());
  ModelProgram program(model, 1);
  const auto outputs = program.forward_training(features, 1, parameters, {});
  Computed result{.outputs = Floats(outputs.begin(), outputs.end()), .slopes = {}};
  program.backward(Floats(outputs.size(), 1.0F), parameters, gradients, {});
  result.slopes.assign(gradients.begin(), gradients.begin() + count);
  return result;
}

// A root and a size of x would each lack a slope there.
TEST(ActivationFunction, HasTheSlopeOfSquareplusAtZero) {
  const Computed at_zero = computed(ActivationFunction::squareplus(), {0});

  EXPECT_THAT(at_zero.outputs, ElementsAre(1));
  EXPECT_THAT(at_zero.slopes, ElementsAre(0.5F));
}

TEST(ActivationFunction, KeepsTheDigitsOfSquareplusFarBelowZero) {
  // The exact value is 4 / (2 (|x| + sqrt(x^2 + 4))), up to a part of 1e-8.
  EXPECT_NEAR(computed(ActivationFunction::squareplus(), {-4096}).outputs[0], 1.0F / 4096, 1e-10F);
}

// With ties, some of the elements that are as large as another one are on its other side in a sorted list.
TEST(ActivationFunction, GivesSparsemaxASumOfOneAlsoWithTies) {
  EXPECT_THAT(computed(ActivationFunction::sparsemax(), {2, 0, 2, -1}).outputs, ElementsAre(0.5F, 0, 0.5F, 0));
  EXPECT_THAT(computed(ActivationFunction::sparsemax(), {7, 7, 7, 7}).outputs, Each(0.25F));
  EXPECT_THAT(computed(ActivationFunction::sparsemax(), {0.5F, 0.25F, 0.25F}).outputs, ElementsAre(0.5F, 0.25F, 0.25F));
  EXPECT_THAT(computed(ActivationFunction::sparsemax(), {5}).outputs, ElementsAre(1));
}

TEST(ActivationFunction, GatesTheFirstHalfWithTheSecond) {
  EXPECT_THAT(computed(ActivationFunction::glu(), {3, -8, 0, 0}).outputs, ElementsAre(1.5F, -4));
  EXPECT_THAT(computed(ActivationFunction::glu(), {3, 0}).slopes, ElementsAre(0.5F, 0.75F));
  EXPECT_THAT(refusal([] {
                computed(ActivationFunction::glu(), {1, 2, 3});
              }),
              HasSubstr("glu needs an even number of elements along the last axis, not 3"));
  EXPECT_EQ((Sequential{Input{3}, Dense{6, {.activation = ActivationFunction::glu()}}}.output_shape()), (Shape{3}));
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
