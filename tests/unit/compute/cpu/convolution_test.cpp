// Convolutions at bf16 are those of f32 on factors that were rounded before, up to the order of their sums.

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "compute/arithmetic/direct_convolution.h"
#include "compute/backend.h"
#include "support/cpu_bf16.h"
#include "unit/compute/arithmetic/support/values.h"
#include "unit/compute/cpu/support/bf16_numbers.h"

namespace holdfast::compute {
namespace {

struct Bf16ConvolutionCase {
  const char* name;
  ConvolutionShape shape;
};

void PrintTo(const Bf16ConvolutionCase& convolution, std::ostream* out) {
  *out << convolution.name;
}

struct Bf16ConvolutionResults {
  std::vector<float> output, input_gradient, kernel_gradient, bias_gradient;
};

Bf16ConvolutionResults convolution_results_of(Backend& backend, const ConvolutionShape& shape,
                                              const std::vector<float>& input, const std::vector<float>& kernel,
                                              const std::vector<float>& bias, const std::vector<float>& gradient) {
  const auto operation = backend.convolution(shape, {.training = true, .input_gradient = true});
  Bf16ConvolutionResults results = {gradient, input, kernel, bias};
  operation->forward(input.data(), kernel.data(), bias.data(), results.output.data());
  operation->backward_input(kernel.data(), gradient.data(), results.input_gradient.data());
  operation->backward_weights(input.data(), gradient.data(), results.kernel_gradient.data(),
                              results.bias_gradient.data());
  return results;
}

// Both sums are f32, of up to a few hundred products below 1.
void expect_near_to(const std::vector<float>& found, const std::vector<float>& expected, const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4F) << what << " " << i;
}

ConvolutionShape grouped() {
  ConvolutionShape shape = {2, 6, 5, 4, 6, 3, 3, 2, 1, Padding::same, true};
  shape.groups = 2;
  return shape;
}

ConvolutionShape dilated() {
  ConvolutionShape shape = {2, 7, 6, 3, 4, 3, 2, 1, 1, Padding::same, true};
  shape.dilation_height = 2;
  shape.dilation_width = 3;
  return shape;
}

ConvolutionShape depthwise() {
  ConvolutionShape shape = {1, 5, 6, 8, 8, 3, 3, 1, 1, Padding::valid, false};
  shape.groups = 8;
  return shape;
}

ConvolutionShape volume() {
  ConvolutionShape shape = {2, 4, 3, 2, 3, 2, 3, 1, 2, Padding::same, true};
  shape.depth = 5;
  shape.kernel_depth = 3;
  shape.stride_depth = 2;
  return shape;
}

class ConvolutionsInBf16 : public testing::TestWithParam<Bf16ConvolutionCase> {};

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvolutionsInBf16,
    testing::Values(Bf16ConvolutionCase{"Narrow", {2, 5, 4, 3, 6, 3, 2, 1, 1, Padding::same, true}},
                    Bf16ConvolutionCase{"OneChannel", {4, 28, 28, 1, 6, 5, 5, 1, 1, Padding::same, true}},
                    Bf16ConvolutionCase{"Strided", {2, 6, 5, 2, 3, 3, 3, 2, 2, Padding::same, true}},
                    Bf16ConvolutionCase{"Unpadded", {3, 14, 14, 6, 16, 5, 5, 1, 1, Padding::valid, true}},
                    Bf16ConvolutionCase{"Pointwise", {2, 4, 3, 5, 6, 1, 1, 1, 1, Padding::valid, true}},
                    Bf16ConvolutionCase{"PointwiseSkips", {2, 8, 8, 20, 12, 1, 1, 2, 2, Padding::valid, true}},
                    Bf16ConvolutionCase{"Wide", {2, 8, 8, 32, 64, 3, 3, 1, 1, Padding::same, true}},
                    Bf16ConvolutionCase{"WidePointwise", {2, 8, 8, 64, 32, 1, 1, 2, 2, Padding::same, false}},
                    Bf16ConvolutionCase{"Grouped", grouped()}, Bf16ConvolutionCase{"Dilated", dilated()},
                    Bf16ConvolutionCase{"Depthwise", depthwise()}, Bf16ConvolutionCase{"Volume", volume()}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_P(ConvolutionsInBf16, MultiplyRoundedFactors) {
  if (const std::string why = obstacle_of_bf16(); !why.empty()) GTEST_SKIP() << why;
  const ConvolutionShape& shape = GetParam().shape;
  const DirectConvolution plan(shape);
  const std::vector<float> input = random_values(plan.inputs(), 1), kernel = random_values(plan.kernel_elements(), 2),
                           bias = random_values(plan.filters, 3),
                           gradient = random_values(plan.windows() * plan.filters, 4);
  const auto host = make_cpu_backend(1), bf16 = make_cpu_backend(1, Precision::bf16);

  const Bf16ConvolutionResults expected =
      convolution_results_of(*host, shape, rounded(input), rounded(kernel), bias, rounded(gradient));
  const Bf16ConvolutionResults found = convolution_results_of(*bf16, shape, input, kernel, bias, gradient);

  expect_near_to(found.output, expected.output, "output");
  expect_near_to(found.input_gradient, expected.input_gradient, "gradient of the input");
  expect_near_to(found.kernel_gradient, expected.kernel_gradient, "gradient of the kernel");
  // A sum of gradients, without a product whose factors were rounded.
  const Bf16ConvolutionResults exact = convolution_results_of(*host, shape, input, kernel, bias, gradient);
  if (shape.has_bias) expect_near_to(found.bias_gradient, exact.bias_gradient, "gradient of the bias");
}

}  // namespace
}  // namespace holdfast::compute
