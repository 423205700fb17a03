#include "holdfast/nn/conv2d.h"

#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "unit/nn/support/convolution_case.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

using reference::Images;
using reference::Sliding;
using reference::Values;

struct ConvolutionCase {
  std::string name;
  std::int64_t height, width, channels, filters;
  Extent2D kernel;
  Extent2D strides;
  Padding padding;
};

Sliding sliding(const ConvolutionCase& c) {
  return {c.kernel.height, c.kernel.width, c.strides.height, c.strides.width, c.padding == Padding::same};
}

class Conv2DCases : public testing::TestWithParam<ConvolutionCase> {};

// A convolution of 1 x 1 stands before the one under test, so that the gradient of its input counts as well.
TEST_P(Conv2DCases, OutputsAndGradientsAreThoseOfTheReference) {
  const ConvolutionCase& c = GetParam();
  constexpr std::int64_t kSamples = 2;
  const Sequential model{Input{c.height, c.width, 2}, Conv2D{c.channels, 1},
                         Conv2D{c.filters, c.kernel, {.strides = c.strides, .padding = c.padding}}};
  const Images images = {kSamples, c.height, c.width, 2};
  const auto reference = [&](const Values& x, const std::vector<Values>& p) {
    const Values before = reference::convolution(x, images, p[0], p[1], c.channels, {});
    const Images between = {kSamples, c.height, c.width, c.channels};
    return reference::convolution(before, between, p[2], p[3], c.filters, sliding(c));
  };

  // A gradient of the first kernel sums over all elements of all windows and filters; one of the second over all
  // positions and the 2 channels and bias before. A path sees as many roundings as the sums that it is in have terms.
  const auto positions = static_cast<double>(kSamples * model.output_shape()[0] * model.output_shape()[1]);
  const auto window = static_cast<double>(c.kernel.height * c.kernel.width);
  const double paths = std::max(positions * window * static_cast<double>(c.filters), positions * 3);
  const double roundings = positions + window * static_cast<double>(c.filters + c.channels) + 4;
  reference::expect_training_matches(model, kSamples, reference, {.paths = paths, .roundings = roundings});
}

INSTANTIATE_TEST_SUITE_P(Shapes, Conv2DCases,
                         testing::Values(ConvolutionCase{"OneToSix", 8, 8, 1, 6, 5, 1, Padding::valid},
                                         ConvolutionCase{"SixToSixteen", 6, 6, 6, 16, 5, 1, Padding::valid},
                                         ConvolutionCase{"SamePadding", 5, 7, 3, 4, 3, 1, Padding::same},
                                         ConvolutionCase{"SamePaddingEvenKernel", 6, 5, 2, 3, {4, 2}, 1, Padding::same},
                                         ConvolutionCase{"StridesLeaveARest", 8, 7, 2, 3, 3, 2, Padding::valid},
                                         ConvolutionCase{"StridesAndSamePadding", 7, 8, 2, 5, 3, 2, Padding::same},
                                         ConvolutionCase{"UnevenStrides", 9, 8, 3, 2, {2, 3}, {3, 1}, Padding::same},
                                         ConvolutionCase{"StrideBeyondTheKernel", 9, 9, 2, 2, 2, 4, Padding::same},
                                         ConvolutionCase{
                                             "KernelAsLargeAsTheImage", 4, 3, 2, 7, {4, 3}, 1, Padding::valid},
                                         ConvolutionCase{"KernelBeyondTheImage", 2, 3, 2, 3, 5, 1, Padding::same},
                                         ConvolutionCase{"OneByOne", 3, 3, 5, 8, 1, 1, Padding::valid},
                                         ConvolutionCase{"WideLayer", 4, 4, 16, 16, 2, 1, Padding::same}),
                         [](const auto& instance) { return instance.param.name; });

class DilatedAndGroupedConv2D : public testing::TestWithParam<WindowCase> {};

TEST_P(DilatedAndGroupedConv2D, OutputsAndGradientsAreThoseOfTheReference) {
  expect_convolution_matches<Conv2D, Extent2D>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, DilatedAndGroupedConv2D,
    testing::Values(WindowCase{"Dilated", {7, 8}, {3, 2}, {1, 1}, {2, 3}, Padding::valid, 3, 4},
                    WindowCase{"DilatedAndPadded", {6, 5}, {3, 3}, {1, 1}, {2, 1}, Padding::same, 2, 3},
                    WindowCase{"DilatedBeyondTheImage", {3, 3}, {3, 3}, {1, 1}, {4, 4}, Padding::same, 2, 3},
                    WindowCase{"TwoGroups", {5, 6}, {3, 3}, {1, 1}, {1, 1}, Padding::same, 4, 6, 2},
                    WindowCase{"GroupsAndStrides", {7, 6}, {3, 2}, {2, 3}, {1, 1}, Padding::same, 6, 3, 3},
                    WindowCase{"GroupsOfOneChannel", {5, 5}, {3, 3}, {1, 1}, {1, 1}, Padding::valid, 5, 10, 5},
                    WindowCase{"ManyGroupsOfOneChannel", {6, 6}, {3, 3}, {2, 2}, {1, 1}, Padding::same, 16, 16, 16},
                    WindowCase{"WideGroups", {2, 3}, {2, 1}, {1, 1}, {1, 1}, Padding::same, 32, 32, 2},
                    WindowCase{"DilatedGroups", {8, 7}, {2, 3}, {1, 1}, {3, 2}, Padding::same, 4, 4, 2}),
    [](const auto& instance) { return instance.param.name; });

TEST(Conv2D, AppliesItsActivationAndNeedsNoBias) {
  const Sequential model{Input{5, 5, 2}, Conv2D{3, 3, {.activation = Activation::tanh, .use_bias = false}}};
  const auto reference = [](const Values& x, const std::vector<Values>& p) {
    const Values sums = reference::convolution(x, {2, 5, 5, 2}, p[0], {}, 3, {3, 3, 1, 1, false});
    return reference::activation("tanh", sums, 3);
  };

  // 2 samples x 9 positions meet in a gradient; 18 terms in a sum, and some roundings in tanh. Slopes of tanh are at
  // most 1, but an error of the sum's 18 paths comes through them.
  reference::expect_training_matches(model, 2, reference, {.paths = 18 + 18, .roundings = 18 + 18 + 8});
}

TEST(Conv2D, KeepsKerasShapesOfKernelAndOutput) {
  const Sequential model{Input{28, 28, 1}, Conv2D{6, {5, 3}, {.strides = 2, .padding = Padding::same}}};

  EXPECT_EQ(model.parameters().entries()[0].shape, (Shape{5, 3, 1, 6}));
  EXPECT_EQ(model.parameters().entries()[1].shape, (Shape{6}));
  EXPECT_EQ(model.output_shape(), (Shape{14, 14, 6}));
}

TEST(Conv2D, RefusesImpossibleNumbers) {
  EXPECT_THROW((Conv2D{0, 3}), Error);
  EXPECT_THROW((Conv2D{4, {3, 0}}), Error);
  EXPECT_THROW((Conv2D{4, 3, {.strides = {1, 0}}}), Error);
  EXPECT_THROW((Conv2D{4, 3, {.dilation_rate = 0}}), Error);
  EXPECT_THROW((Conv2D{4, 3, {.groups = 0}}), Error);
  EXPECT_THROW((Conv2D{4, 3, {.groups = 3}}), Error);
  EXPECT_THROW((Conv2D{4, 3, {.padding = Padding::causal}}), Error);
  EXPECT_THROW((Conv2D{4, 3, {.strides = {2, 1}, .dilation_rate = {1, 2}}}), Error);
}

TEST(Conv2D, WritesDilationAndGroupsOnlyWhereTheyAreNotOne) {
  const Sequential plain{Input{9, 9, 2}, Conv2D{4, 3}};
  const Sequential special{Input{9, 9, 2}, Conv2D{4, 3, {.dilation_rate = {2, 1}, .groups = 2}}};

  EXPECT_EQ(plain.graph(),
            R"({"format":"holdfast.sequential","version":1,"input_shape":[9,9,2],"layers":[)"
            R"({"kind":"Conv2D","name":"conv2d","config":{"filters":4,"kernel_size":[3,3],"strides":[1,1],)"
            R"("padding":"valid","activation":"linear","use_bias":true,"kernel_initializer":"glorot_uniform",)"
            R"("bias_initializer":"zeros"}}]})");
  EXPECT_NE(special.graph().find(R"("padding":"valid","dilation_rate":[2,1],"groups":2,"activation")"),
            std::string::npos);
  EXPECT_EQ(Sequential::from_graph(special.graph()).graph(), special.graph());
}

}  // namespace
}  // namespace holdfast
