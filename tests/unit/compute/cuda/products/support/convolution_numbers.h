#pragma once

// Convolutions on the host, as the expected numbers of other implementations.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "compute/arithmetic/bfloat16.h"
#include "compute/arithmetic/direct_convolution.h"
#include "compute/backend.h"
#include "gpu/support/gpu_test.h"

namespace holdfast::compute {

inline std::vector<ConvolutionShape> small_convolutions() {
  return {{1, 5, 4, 3, 6, 3, 2, 1, 1, Padding::same, true},
          {2, 6, 5, 2, 3, 3, 3, 2, 2, Padding::same, true},
          {2, 7, 6, 1, 6, 5, 5, 1, 1, Padding::valid, true},
          {3, 4, 5, 7, 9, 1, 1, 1, 1, Padding::valid, true},
          {2, 8, 7, 5, 7, 2, 2, 3, 3, Padding::valid, true}};
}

// With groups, dilation, causal padding and a depth.
inline std::vector<ConvolutionShape> special_convolutions() {
  ConvolutionShape dilated = {2, 7, 6, 3, 4, 3, 2, 1, 1, Padding::same, true};
  dilated.dilation_height = 2;
  dilated.dilation_width = 3;
  ConvolutionShape grouped = {2, 6, 5, 4, 6, 3, 3, 2, 1, Padding::same, true};
  grouped.groups = 2;
  ConvolutionShape depthwise = {1, 5, 6, 8, 8, 3, 3, 1, 1, Padding::valid, false};
  depthwise.groups = 8;
  ConvolutionShape causal = {2, 1, 9, 4, 3, 1, 3, 1, 1, Padding::causal, true};
  causal.dilation_width = 2;
  ConvolutionShape volume = {2, 4, 3, 2, 3, 2, 3, 1, 2, Padding::same, true};
  volume.depth = 5;
  volume.kernel_depth = 3;
  volume.stride_depth = 2;
  ConvolutionShape grouped_volume = {1, 3, 4, 4, 4, 2, 2, 1, 1, Padding::valid, true, 2};
  grouped_volume.depth = 4;
  grouped_volume.kernel_depth = 2;
  grouped_volume.dilation_depth = 2;
  return {dilated, grouped, depthwise, causal, volume, grouped_volume};
}

struct ConvolutionNumbers {
  std::vector<float> input, kernel, bias, output_gradient;
};

inline ConvolutionNumbers random_numbers_for(const ConvolutionShape& shape) {
  const DirectConvolution plan(shape);
  const auto values = [](std::uint64_t seed, std::int64_t count) {
    return random_values(seed, static_cast<std::size_t>(count));
  };
  return {.input = values(1, plan.inputs()),
          .kernel = values(2, plan.kernel_elements()),
          .bias = values(3, plan.filters),
          .output_gradient = values(4, plan.windows() * plan.filters)};
}

struct ConvolutionResults {
  std::vector<float> output, input_gradient, kernel_gradient, bias_gradient;
};

// Factors are rounded to bf16 if the precision says so. The gradient of a bias is not a product, so it is not rounded.
inline ConvolutionResults results_on_host(const ConvolutionShape& shape, const ConvolutionNumbers& numbers,
                                          Precision precision) {
  const auto factors = [&](std::vector<float> values) {
    if (precision != Precision::bf16) return values;
    for (float& value : values) {
      value = std::bit_cast<float>(widen_bfloat16(round_to_bfloat16(std::bit_cast<std::uint32_t>(value))));
    }
    return values;
  };
  const std::vector<float> input = factors(numbers.input), kernel = factors(numbers.kernel),
                           gradient = factors(numbers.output_gradient);
  const auto host = make_cpu_backend(1);
  const auto operation = host->convolution(shape, {.training = true, .input_gradient = true});
  ConvolutionResults results = {numbers.output_gradient, numbers.input, numbers.kernel, numbers.bias};
  std::vector<float> unused = numbers.kernel;
  operation->forward(input.data(), kernel.data(), numbers.bias.data(), results.output.data());
  operation->backward_input(kernel.data(), gradient.data(), results.input_gradient.data());
  operation->backward_weights(input.data(), gradient.data(), results.kernel_gradient.data(),
                              results.bias_gradient.data());
  operation->backward_weights(input.data(), numbers.output_gradient.data(), unused.data(),
                              results.bias_gradient.data());
  return results;
}

// Runs every pass on arrays in host memory, and checks that nothing outside of them was written.
inline ConvolutionResults results_of(ConvolutionOperation& operation, const ConvolutionNumbers& numbers) {
  const auto device = [](const std::vector<float>& values) { return DeviceArray(host_memory(), values); };
  const DeviceArray input = device(numbers.input), kernel = device(numbers.kernel), bias = device(numbers.bias),
                    gradient = device(numbers.output_gradient), output = device(numbers.output_gradient),
                    of_input = device(numbers.input), of_kernel = device(numbers.kernel),
                    of_bias = device(numbers.bias);
  operation.forward(input.data(), kernel.data(), bias.data(), output.data());
  operation.backward_input(kernel.data(), gradient.data(), of_input.data());
  operation.backward_weights(input.data(), gradient.data(), of_kernel.data(), of_bias.data());
  return {output.values(), of_input.values(), of_kernel.values(), of_bias.values()};
}

// The host's sums are f32, of a few dozen products. `rounding` is the allowed error relative to the largest result.
inline void expect_near(const ConvolutionResults& expected, const ConvolutionResults& actual, float rounding,
                        const ConvolutionShape& shape) {
  const auto compare = [&](const std::vector<float>& wanted, const std::vector<float>& given, const char* what) {
    float largest = 0;
    for (const float value : wanted) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(wanted[i], given[i], 2e-5F + rounding * largest)
          << what << " " << i << " of " << describe_convolution("a pass", shape);
    }
  };
  compare(expected.output, actual.output, "output");
  compare(expected.input_gradient, actual.input_gradient, "gradient of the input");
  compare(expected.kernel_gradient, actual.kernel_gradient, "gradient of the kernel");
  if (shape.has_bias) compare(expected.bias_gradient, actual.bias_gradient, "gradient of the bias");
}

}  // namespace holdfast::compute
