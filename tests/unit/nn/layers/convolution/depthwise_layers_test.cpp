#include "holdfast/nn/depthwise_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/nn/support/convolution_case.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using reference::Values;
using testing::ElementsAre;
using testing::HasSubstr;

// In these cases `filters` is what the depthwise convolution gives: channels times the multiplier.
Values depthwise_reference(const WindowCase& c, const Values& x, const Values& kernel, const Values& bias) {
  return reference::slide_kernel(x, windows_of(c), {kernel, bias, c.channels, c.filters, c.channels});
}

template <class SelfLayer, class Extent>
void expect_depthwise_matches(const WindowCase& c) {
  const SelfLayer layer(extent_of<Extent>(c.kernel), {.strides = extent_of<Extent>(c.strides),
                                                      .padding = c.padding,
                                                      .depth_multiplier = c.filters / c.channels,
                                                      .dilation_rate = extent_of<Extent>(c.dilation)});
  const auto reference = [&](const Values& x, const std::vector<Values>& p) {
    return depthwise_reference(c, x, p[0], p[1]);
  };
  expect_matches(sample_shape(c), layer, reference, Shape(c.kernel).element_count());
}

template <class SelfLayer, class Extent>
void expect_separable_matches(const WindowCase& c) {
  constexpr std::int64_t kFilters = 3;
  const SelfLayer layer(kFilters, extent_of<Extent>(c.kernel),
                        {.strides = extent_of<Extent>(c.strides),
                         .padding = c.padding,
                         .dilation_rate = extent_of<Extent>(c.dilation),
                         .depth_multiplier = c.filters / c.channels});
  const auto reference = [&](const Values& x, const std::vector<Values>& p) {
    return reference::dense(depthwise_reference(c, x, p[0], {}), c.filters, p[1], p[2], kFilters);
  };
  expect_matches(sample_shape(c), layer, reference, Shape(c.kernel).element_count() * c.filters);
}

class DepthwiseCases : public testing::TestWithParam<WindowCase> {};

TEST_P(DepthwiseCases, OutputsAndGradientsAreThoseOfTheReference) {
  const WindowCase& c = GetParam();
  if (c.extents.size() == 1) {
    expect_depthwise_matches<DepthwiseConv1D, std::int64_t>(c);
    expect_separable_matches<SeparableConv1D, std::int64_t>(c);
  } else {
    expect_depthwise_matches<DepthwiseConv2D, Extent2D>(c);
    expect_separable_matches<SeparableConv2D, Extent2D>(c);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, DepthwiseCases,
    testing::Values(WindowCase{"Steps", {7}, {3}, {1}, {1}, Padding::valid, 3, 3},
                    WindowCase{"StepsWithAMultiplier", {8}, {3}, {2}, {1}, Padding::same, 2, 6},
                    WindowCase{"StepsWithDistance", {9}, {2}, {1}, {3}, Padding::same, 2, 2},
                    WindowCase{"Image", {5, 6}, {3, 3}, {1, 1}, {1, 1}, Padding::same, 4, 4},
                    WindowCase{"ImageWithAMultiplier", {6, 5}, {3, 2}, {2, 1}, {1, 1}, Padding::valid, 2, 4},
                    WindowCase{"ImageWithDistance", {7, 6}, {3, 2}, {1, 1}, {2, 3}, Padding::same, 3, 3},
                    WindowCase{"OneChannel", {4, 4}, {3, 3}, {1, 1}, {1, 1}, Padding::same, 1, 2},
                    WindowCase{"ManyChannels", {5, 5}, {3, 3}, {2, 2}, {1, 1}, Padding::same, 16, 16}),
    [](const auto& instance) { return instance.param.name; });

// Computed by Keras 3.15.1 on JAX.
TEST(DepthwiseLayers, GiveKerasNumbers) {
  EXPECT_THAT(outputs_of_pattern({4, 2}, DepthwiseConv1D{3, {.padding = Padding::same, .depth_multiplier = 2}}),
              ElementsAre(-18, -3, -9, 13, 12, -10, 4, -24, 18, -1, 6, 3, 10, 8, 3, 10));
  EXPECT_THAT(outputs_of_pattern({3, 3, 2},
                                 DepthwiseConv2D{2, {.strides = 2, .padding = Padding::same, .depth_multiplier = 2}}),
              ElementsAre(14, -6, -11, -9, -4, 4, 13, -5, 10, 11, 2, 5, 10, -4, 3, -4));
  EXPECT_THAT(outputs_of_pattern({4, 4, 2}, DepthwiseConv2D{2, {.dilation_rate = 2}}),
              ElementsAre(4, 19, 12, 2, 3, 17, 11, -22));
  EXPECT_THAT(outputs_of_pattern({4, 2}, SeparableConv1D{3, 2, {.depth_multiplier = 2}}),
              ElementsAre(3, 37, -76, -23, 4, 3, -38, 26, 27));
  EXPECT_THAT(outputs_of_pattern({3, 4, 3}, SeparableConv2D{2, 2, {.strides = 2, .padding = Padding::same}}),
              ElementsAre(49, -11, 76, -65, -35, -18, -71, 20));
}

TEST(DepthwiseLayers, KeepKerasShapesAndNamesOfWeights) {
  const Sequential depthwise{Input{8, 9, 3}, DepthwiseConv2D{{2, 3}, {.depth_multiplier = 4}}};
  const Sequential separable{Input{8, 3}, SeparableConv1D{5, 2, {.depth_multiplier = 4}}};

  EXPECT_EQ(depthwise.parameters().entries()[0].name, "depthwise_conv2d/kernel");
  EXPECT_EQ(depthwise.parameters().entries()[0].shape, (Shape{2, 3, 3, 4}));
  EXPECT_EQ(depthwise.parameters().entries()[1].shape, (Shape{12}));
  EXPECT_EQ(depthwise.output_shape(), (Shape{7, 7, 12}));
  EXPECT_EQ(separable.parameters().entries()[0].name, "separable_conv1d/depthwise_kernel");
  EXPECT_EQ(separable.parameters().entries()[0].shape, (Shape{2, 3, 4}));
  EXPECT_EQ(separable.parameters().entries()[1].name, "separable_conv1d/pointwise_kernel");
  EXPECT_EQ(separable.parameters().entries()[1].shape, (Shape{1, 12, 5}));
  EXPECT_EQ(separable.parameters().entries()[2].shape, (Shape{5}));
}

TEST(DepthwiseLayers, AreReadBackFromTheirText) {
  const Sequential model{
      Input{8, 9, 3},
      DepthwiseConv2D{2, {.padding = Padding::same, .depth_multiplier = 2, .dilation_rate = {2, 1}, .use_bias = false}},
      SeparableConv2D{
          4, 3, {.strides = 2, .activation = Activation::relu, .pointwise_initializer = Initializer::he_normal()}}};

  EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
}

TEST(DepthwiseLayers, RefuseWhatTheyCannotDo) {
  EXPECT_THAT(refusal([] { DepthwiseConv2D(3, {.depth_multiplier = 0}); }),
              HasSubstr("DepthwiseConv2D needs a depth multiplier from 1 to"));
  EXPECT_THAT(refusal([] { SeparableConv1D(0, 3); }), HasSubstr("SeparableConv1D needs filters from 1 to"));
  EXPECT_THAT(refusal([] { SeparableConv2D(4, 3, {.strides = 2, .dilation_rate = 2}); }),
              HasSubstr("SeparableConv2D needs strides or a dilation rate of 1"));
  EXPECT_THAT(refusal([] { DepthwiseConv1D(3, {.padding = Padding::causal}); }),
              HasSubstr("DepthwiseConv1D needs padding valid or same, not causal"));
  EXPECT_THAT(refusal([] {
                (Sequential{Input{2, 5, 3}, DepthwiseConv2D{3}});
              }),
              HasSubstr("it needs an input of at least 3 x 3, the size of its window, not 2 x 5"));
}

}  // namespace
}  // namespace holdfast
