#include "nn/operations/elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compute/arithmetic/exponential.h"
#include "holdfast/nn/sequential.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/function_layer.h"

namespace holdfast {
namespace {

using compute::ElementFunction;
using testing::ElementsAre;

constexpr float kInfiniteSlope = std::numeric_limits<float>::infinity();

// The gradient of the sum of function(x).
std::vector<float> gradient_at(const std::vector<float>& x, const FunctionLayer::Function& function) {
  const auto count = static_cast<std::int64_t>(x.size());
  const Sequential model{Input{count}, FunctionLayer(function)};
  const std::vector<float> ones(x.size(), 1.0F);
  std::vector<float> parameters(model.parameters().float_count()), gradients(parameters.size());
  ModelProgram program(model, 1);
  program.forward_training(x, 1, parameters, {});
  program.backward(ones, parameters, gradients, {});
  gradients.resize(x.size());
  return gradients;
}

Value raised(const ElementArgument& base, const ElementArgument& exponent) {
  return element_function(ElementFunction::power, {base, exponent});
}

TEST(Power, HasAFiniteGradientAtZeroWhereItsSlopeIsFinite) {
  const auto at_zero = [](float exponent) {
    return gradient_at({0}, [&](const Value& x) { return power(x, exponent) + x * 0.0F; })[0];
  };

  EXPECT_EQ(at_zero(0), 0.0F);
  EXPECT_EQ(at_zero(1), 1.0F);
  EXPECT_EQ(at_zero(1.5F), 0.0F);
  EXPECT_EQ(at_zero(2), 0.0F);
  EXPECT_EQ(at_zero(0.5F), kInfiniteSlope);
}

TEST(Power, TrainsNothingWithAConstantExponentOfZero) {
  EXPECT_THAT(gradient_at({0, 2}, [](const Value& x) { return power(x, 0); }), ElementsAre(0, 0));
}

TEST(Power, HasAFiniteGradientAtABaseOfZeroIfTheExponentIsAValue) {
  // x^x has the slope x x^(x-1) + x^x log(x). At 0 both terms count as 0.
  EXPECT_THAT(gradient_at({0, 1}, [](const Value& x) { return raised(x, x); }), ElementsAre(0, 1));
  // 0^(x + 2) to x, and x^(stop_gradient(x) + 2) to x.
  EXPECT_THAT(gradient_at({0, 1}, [](const Value& x) { return raised(0.0F, x + 2.0F); }), ElementsAre(0, 0));
  EXPECT_THAT(gradient_at({0, 1}, [](const Value& x) { return raised(x, stop_gradient(x) + 2.0F); }),
              ElementsAre(0, 3));
}

TEST(Power, UsesOurOwnLogarithmInTheGradientOfAConstantBase) {
  for (const float base : {0.1F, 2.0F, 3.0F, 7.3F, 1e-30F, 1e30F}) {
    EXPECT_EQ(gradient_at({1}, [&](const Value& x) { return raised(base, x); })[0], base * compute::logarithm(base));
  }
}

}  // namespace
}  // namespace holdfast
