#include "compute/arithmetic/activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "compute/backend.h"
#include "unit/compute/arithmetic/support/values.h"

namespace holdfast::compute {
namespace {

// The host's functions are accurate to a few units in the last place, for values up to 4.
constexpr float kActivationTolerance = 2e-6F;

template <class Formula>
void expect_as_on_the_host(Activation activation) {
  constexpr std::int64_t kCount = 1000;
  std::vector<float> input = random_values(kCount, 1);
  for (float& value : input) value *= 4;
  const std::vector<float> output_gradient = random_values(kCount, 2);
  const auto backend = make_cpu_backend(1);
  const auto operation = backend->activation({.activation = activation, .rows = 10, .channels = kCount / 10},
                                             {.training = true, .input_gradient = true});
  std::vector<float> output(input.size()), input_gradient(input.size());

  operation->forward(input.data(), output.data());
  const std::vector<float>& kept = is_differentiated_by_output(activation) ? output : input;
  operation->backward(kept.data(), output_gradient.data(), input_gradient.data());

  for (std::size_t i = 0; i < input.size(); ++i) {
    EXPECT_NEAR(Formula::value(input[i]), output[i], kActivationTolerance) << name(activation) << " of " << input[i];
    EXPECT_NEAR(Formula::derivative(kept[i]) * output_gradient[i], input_gradient[i], kActivationTolerance)
        << "derivative of " << name(activation) << " at " << input[i];
  }
}

TEST(Activations, AreThoseOfTheHost) {
  expect_as_on_the_host<Relu>(Activation::relu);
  expect_as_on_the_host<Tanh>(Activation::tanh);
  expect_as_on_the_host<Sigmoid>(Activation::sigmoid);
  expect_as_on_the_host<Gelu>(Activation::gelu);
}

TEST(Activations, ShowThatAnInputWasNotANumber) {
  const float nothing = std::numeric_limits<float>::quiet_NaN();

  EXPECT_TRUE(std::isnan(Relu::value(nothing)));
  EXPECT_TRUE(std::isnan(Tanh::value(nothing)));
  EXPECT_TRUE(std::isnan(Sigmoid::value(nothing)));
  EXPECT_TRUE(std::isnan(Gelu::value(nothing)));
}

TEST(Activations, EndWhereTheyTendTo) {
  const float large = 1e6F;

  EXPECT_EQ(Sigmoid::value(-large), 0.0F);
  EXPECT_EQ(Sigmoid::value(large), 1.0F);
  EXPECT_EQ(Gelu::value(large), large);
  EXPECT_EQ(Gelu::value(-large), 0.0F);
  EXPECT_EQ(Gelu::derivative(large), 1.0F);
  EXPECT_EQ(Gelu::derivative(-large), 0.0F);
}

}  // namespace
}  // namespace holdfast::compute
