#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "compute/arithmetic/bfloat16.h"
#include "compute/arithmetic/convolution.h"
#include "compute/cuda/cuda_convolution.h"
#include "gpu/support/gpu_test.h"
#include "unit/compute/cuda/products/support/host_cublas.h"

namespace holdfast::compute {
namespace {

using Floats = std::vector<float>;

Floats rounded(Floats values, Precision precision) {
  if (precision != Precision::bf16) return values;
  for (float& value : values) {
    value = std::bit_cast<float>(widen_bfloat16(round_to_bfloat16(std::bit_cast<std::uint32_t>(value))));
  }
  return values;
}

// The host's sums are f32, of a few dozen products.
void expect_near(const Floats& expected, const DeviceArray& actual, const std::string& what) {
  const Floats values = actual.values();
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(expected[i], values[i], 2e-5) << what << " " << i;
}

class ConvolutionsByColumns : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override { host_cublas::library() = {}; }
  void TearDown() override { EXPECT_FALSE(host_cublas::library().was_misled); }

  CudaContext context_{0};
};

TEST_P(ConvolutionsByColumns, GiveTheHostsNumbers) {
  const auto host = make_cpu_backend(1);
  for (const ConvolutionShape& shape :
       std::vector<ConvolutionShape>{{1, 5, 4, 3, 6, 3, 2, 1, 1, Padding::same, true},
                                     {2, 6, 5, 2, 3, 3, 3, 2, 2, Padding::same, true},
                                     {2, 7, 6, 1, 6, 5, 5, 1, 1, Padding::valid, true},
                                     {3, 4, 5, 7, 9, 1, 1, 1, 1, Padding::valid, true},
                                     {2, 8, 7, 5, 7, 2, 2, 3, 3, Padding::valid, true}}) {
    const ConvolutionPlan plan(shape);
    const auto values = [](std::uint64_t seed, std::int64_t count) {
      return random_values(seed, static_cast<std::size_t>(count));
    };
    const Floats input = values(1, plan.samples * plan.sample_inputs()),
                 kernel = values(2, plan.window_elements() * plan.filters), bias = values(3, plan.filters),
                 gradient = values(4, plan.samples * plan.sample_windows() * plan.filters);
    const Floats inputs = rounded(input, GetParam()), kernels = rounded(kernel, GetParam()),
                 gradients = rounded(gradient, GetParam());
    const auto reference = host->convolution(shape, {.training = true, .input_gradient = true});
    Floats output = gradient, input_gradient = input, kernel_gradient = kernel, bias_gradient = bias, unused = kernel;
    reference->forward(inputs.data(), kernels.data(), bias.data(), output.data());
    reference->backward_input(kernels.data(), gradients.data(), input_gradient.data());
    reference->backward_weights(inputs.data(), gradients.data(), kernel_gradient.data(), bias_gradient.data());
    reference->backward_weights(inputs.data(), gradient.data(), unused.data(), bias_gradient.data());
    const auto device = [](const Floats& numbers) { return DeviceArray(host_memory(), numbers); };
    const DeviceArray device_input = device(input), device_kernel = device(kernel), device_bias = device(bias),
                      device_gradient = device(gradient), result = device(gradient), of_input = device(input),
                      of_kernel = device(kernel), of_bias = device(bias);

    const auto operation = make_columns_convolution(
        context_, GetParam(), shape, {.forward = true, .backward_input = true, .backward_weights = true});
    operation->forward(device_input.data(), device_kernel.data(), device_bias.data(), result.data());
    operation->backward_input(device_kernel.data(), device_gradient.data(), of_input.data());
    operation->backward_weights(device_input.data(), device_gradient.data(), of_kernel.data(), of_bias.data());

    const std::string what = std::to_string(shape.height) + " x " + std::to_string(shape.width) + ": ";
    expect_near(output, result, what + "output");
    expect_near(input_gradient, of_input, what + "gradient of the input");
    expect_near(kernel_gradient, of_kernel, what + "gradient of the kernel");
    expect_near(bias_gradient, of_bias, what + "gradient of the bias");
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, ConvolutionsByColumns,
                         testing::Values(Precision::f32, Precision::tf32, Precision::bf16),
                         [](const auto& instance) { return std::string(name(instance.param)); });

}  // namespace
}  // namespace holdfast::compute
