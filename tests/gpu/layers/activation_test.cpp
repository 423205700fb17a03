#include "gpu/layers/support/layer_test.h"

#include <fmt/format.h>

namespace holdfast::compute {
namespace {

using DeviceActivation = LayerTest;

// The functions of the libraries differ by a few units in the last place, for values up to 4.
constexpr float kTolerance = 4e-6F;

TEST_F(DeviceActivation, GivesTheHostsNumbers) {
  struct Extent {
    std::int64_t rows, channels;
  };
  for (const Activation activation :
       {Activation::relu, Activation::tanh, Activation::sigmoid, Activation::softmax, Activation::gelu}) {
    for (const Extent extent : {Extent{5, 7}, Extent{1, 1}, Extent{128, 10}, Extent{3, 50257}, Extent{2048, 500}}) {
      const ActivationShape shape = {.activation = activation, .rows = extent.rows, .channels = extent.channels};
      const Use use = {.training = true, .input_gradient = true};
      const std::int64_t count = extent.rows * extent.channels;
      Floats input = values(1, count);
      for (float& value : input) value *= 4;
      const Floats gradient = values(2, count);
      Floats expected(input.size()), expected_gradient(input.size());
      const auto expected_operation = host().activation(shape, use);
      const auto operation = backend().activation(shape, use);
      const bool keeps_output = is_differentiated_by_output(activation);
      const DeviceArray device_input = upload(input), device_gradient = upload(gradient), result = output(count),
                        input_gradient = output(count), in_place = upload(input);

      expected_operation->forward(input.data(), expected.data());
      expected_operation->backward(keeps_output ? expected.data() : input.data(), gradient.data(),
                                   expected_gradient.data());
      operation->forward(device_input.data(), result.data());
      operation->backward(keeps_output ? result.data() : device_input.data(), device_gradient.data(),
                          input_gradient.data());
      operation->forward(in_place.data(), in_place.data());

      const std::string what = fmt::format("{} of [{}, {}]", name(activation), extent.rows, extent.channels);
      EXPECT_EQ(differences(expected, result.values(), kTolerance), "") << what;
      EXPECT_EQ(differences(expected_gradient, input_gradient.values(), kTolerance), "") << what;
      EXPECT_EQ(bit_differences(result.values(), in_place.values()), "") << what << " in place";
    }
  }
}

}  // namespace
}  // namespace holdfast::compute
