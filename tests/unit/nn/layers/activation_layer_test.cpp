#include "holdfast/nn/activation_layer.h"

#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/dense.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

using reference::Values;

class Activations : public testing::TestWithParam<Activation> {};

// oneDNN promises no bound for its exponential functions; its own tests allow some 1e-6, 16 times 2^-24.
constexpr double kFunctionRoundings = 16;

TEST_P(Activations, OutputsAndGradientsAreThoseOfTheReference) {
  const std::string activation(name(GetParam()));
  const Sequential model{Input{6}, Dense{9}, ActivationLayer{GetParam()}};
  const auto reference = [&](const Values& x, const std::vector<Values>& p) {
    return reference::activation(activation, reference::dense(x, 6, p[0], p[1], 9), 9);
  };

  // 5 samples meet in a gradient, and in softmax 9 outputs of each; slopes and curvatures of all functions are at
  // most 1.2. The argument itself is a sum of 7 paths.
  reference::expect_training_matches(model, 5, reference,
                                     {.paths = 1.2 * 5 * 9 + 7, .roundings = 5 + 9 + 7 + kFunctionRoundings});
}

TEST_P(Activations, TwoInARowDoNotOverwriteWhatTheBackwardPassNeeds) {
  const std::string activation(name(GetParam()));
  const Sequential model{Input{4}, Dense{5}, ActivationLayer{GetParam()}, ActivationLayer{GetParam()}};
  const auto reference = [&](const Values& x, const std::vector<Values>& p) {
    const Values once = reference::activation(activation, reference::dense(x, 4, p[0], p[1], 5), 5);
    return reference::activation(activation, once, 5);
  };

  reference::expect_training_matches(model, 3, reference,
                                     {.paths = 1.44 * 3 * 25 + 5, .roundings = 3 + 10 + 5 + 2 * kFunctionRoundings});
}

INSTANTIATE_TEST_SUITE_P(All, Activations,
                         testing::Values(Activation::linear, Activation::relu, Activation::tanh, Activation::sigmoid,
                                         Activation::softmax, Activation::gelu),
                         [](const auto& instance) { return std::string(name(instance.param)); });

TEST(Activation, SoftmaxStaysFiniteForLargeArguments) {
  Sequential model{Input{3}, ActivationLayer{Activation::softmax}};
  model.set_weights({}, {});

  const Tensor y = model.predict(Tensor({2, 3}, {1000.0F, 1000.0F, -1000.0F, -5000.0F, -5000.0F, -5000.0F}));

  // Each row sums to 1 with 3 terms and a division, 2^-24 each at most; the exponential of 0 is exact to some units.
  const float tolerance = 16 * 0x1p-24F;
  EXPECT_NEAR(y.values()[0], 0.5F, tolerance);
  EXPECT_NEAR(y.values()[1], 0.5F, tolerance);
  EXPECT_EQ(y.values()[2], 0.0F);
  for (std::size_t i = 3; i < 6; ++i) EXPECT_NEAR(y.values()[i], 1.0F / 3.0F, tolerance);
}

TEST(Activation, HasTheNamesOfKeras) {
  for (const char* const text : {"linear", "relu", "tanh", "sigmoid", "softmax", "gelu"}) {
    EXPECT_EQ(name(activation_from_name(text)), text);
  }
  EXPECT_THROW(activation_from_name("swish"), Error);
}

}  // namespace
}  // namespace holdfast
