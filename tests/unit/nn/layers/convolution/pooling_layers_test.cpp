#include "holdfast/nn/pooling_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/program/model_program.h"
#include "unit/nn/support/convolution_case.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

template <class SelfLayer, class Extent>
void expect_pooling_matches(const WindowCase& c, bool is_maximum) {
  const SelfLayer layer(extent_of<Extent>(c.kernel), {.strides = extent_of<Extent>(c.strides), .padding = c.padding});
  const auto reference = [&](const reference::Values& x, const std::vector<reference::Values>&) {
    return reference::slide_pool(x, windows_of(c), c.channels, is_maximum);
  };
  expect_matches(sample_shape(c), layer, reference, Shape(c.kernel).element_count());
}

class PoolingLayerCases : public testing::TestWithParam<WindowCase> {};

TEST_P(PoolingLayerCases, OutputsAndGradientsAreThoseOfTheReference) {
  const WindowCase& c = GetParam();
  if (c.extents.size() == 1) {
    expect_pooling_matches<MaxPooling1D, std::int64_t>(c, true);
    expect_pooling_matches<AveragePooling1D, std::int64_t>(c, false);
  } else {
    expect_pooling_matches<MaxPooling3D, Extent3D>(c, true);
    expect_pooling_matches<AveragePooling3D, Extent3D>(c, false);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PoolingLayerCases,
    testing::Values(WindowCase{"Steps", {9}, {2}, {2}, {1}, Padding::valid, 3},
                    WindowCase{"StepsThatOverlap", {9}, {4}, {1}, {1}, Padding::same, 2},
                    WindowCase{"PaddedSteps", {7}, {3}, {2}, {1}, Padding::same, 8},
                    WindowCase{"Volume", {4, 6, 5}, {2, 2, 2}, {2, 2, 2}, {1, 1, 1}, Padding::valid, 3},
                    WindowCase{"VolumeThatOverlaps", {3, 4, 5}, {2, 3, 2}, {1, 1, 1}, {1, 1, 1}, Padding::same, 2},
                    WindowCase{"PaddedVolume", {5, 3, 4}, {3, 2, 3}, {2, 2, 2}, {1, 1, 1}, Padding::same, 2}),
    [](const auto& instance) { return instance.param.name; });

TEST(PoolingLayers, UseTheWindowAsStridesByDefault) {
  EXPECT_EQ((Sequential{Input{9, 4}, MaxPooling1D{2}}.output_shape()), (Shape{4, 4}));
  EXPECT_EQ((Sequential{Input{9, 8, 7, 4}, AveragePooling3D{{2, 3, 4}}}.output_shape()), (Shape{4, 2, 1, 4}));
}

// Computed by Keras 3.15.1 on JAX.
TEST(MaxPooling3D, GivesKerasNumbers) {
  EXPECT_THAT(outputs_of_pattern({2, 2, 3, 1}, MaxPooling3D{2, {.strides = 1, .padding = Padding::same}}),
              testing::ElementsAre(5, 2, -2, 5, 1, -3, 4, 0, -4, 3, -1, -5));
}

// The gradient of each bias is that of one element of the volume.
TEST(MaxPooling3D, GivesTheGradientToTheFirstOfEqualElements) {
  const Sequential model{Input{2, 2, 2, 1}, FunctionLayer([](const Value& x) { return x; }), MaxPooling3D{2}};
  ModelProgram program(model, 1);
  const std::vector<float> weights(model.parameters().float_count(), 0.0F);
  const std::vector<float> features = {0, 0, 0, 5, 5, 0, 0, 5}, gradient = {1};
  std::vector<float> gradients(weights.size()), contributions(program.contribution_count());

  program.forward_training(features, 1, weights, {});
  program.backward(gradient, weights, gradients, contributions);

  EXPECT_THAT(model.parameters().view(std::span<const float>(gradients), 0),
              testing::ElementsAre(0, 0, 0, 1, 0, 0, 0, 0));
}

TEST(PoolingLayers, AreReadBackFromTheirText) {
  const Sequential sequence{Input{20, 4}, MaxPooling1D{3, {.strides = 2, .padding = Padding::same}},
                            AveragePooling1D{2}};
  const Sequential volume{Input{8, 9, 10, 2}, MaxPooling3D{{1, 2, 3}}, AveragePooling3D{2, {.strides = 1}}};

  EXPECT_EQ(Sequential::from_graph(sequence.graph()).graph(), sequence.graph());
  EXPECT_EQ(Sequential::from_graph(volume.graph()).graph(), volume.graph());
}

TEST(PoolingLayers, RefuseWhatTheyCannotDo) {
  EXPECT_THAT(refusal([] { MaxPooling1D(0); }), HasSubstr("MaxPooling1D needs window extents from 1 to"));
  EXPECT_THAT(refusal([] { AveragePooling3D(2, {.padding = Padding::causal}); }),
              HasSubstr("AveragePooling3D needs padding valid or same, not causal"));
  EXPECT_THAT(refusal([] {
                (Sequential{Input{3, 2}, MaxPooling1D{4}});
              }),
              HasSubstr("it needs an input of at least 4, the size of its window, not 3"));
  EXPECT_THAT(refusal([] {
                (Sequential{Input{3, 4, 5, 2}, MaxPooling3D{4}});
              }),
              HasSubstr("it needs an input of at least 4 x 4 x 4, the size of its window, not 3 x 4 x 5"));
}

}  // namespace
}  // namespace holdfast
