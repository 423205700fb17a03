#include "holdfast/nn/convolution_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/program/model_program.h"
#include "unit/nn/support/convolution_case.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ConvolutionLayerCases : public testing::TestWithParam<WindowCase> {};

TEST_P(ConvolutionLayerCases, OutputsAndGradientsAreThoseOfTheReference) {
  const WindowCase& c = GetParam();
  if (c.extents.size() == 1) {
    expect_convolution_matches<Conv1D, std::int64_t>(c);
  } else {
    expect_convolution_matches<Conv3D, Extent3D>(c);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvolutionLayerCases,
    testing::Values(WindowCase{"Steps", {9}, {3}, {1}, {1}, Padding::valid, 2, 4},
                    WindowCase{"StepsWithAStride", {10}, {3}, {2}, {1}, Padding::same, 3, 4},
                    WindowCase{"StepsWithDistance", {11}, {3}, {1}, {3}, Padding::same, 2, 3},
                    WindowCase{"CausalSteps", {8}, {3}, {1}, {1}, Padding::causal, 2, 4},
                    WindowCase{"CausalStepsWithDistance", {7}, {2}, {1}, {4}, Padding::causal, 3, 2},
                    WindowCase{"CausalStepsWithAStride", {8}, {4}, {3}, {1}, Padding::causal, 2, 2},
                    WindowCase{"GroupedSteps", {6}, {3}, {1}, {1}, Padding::same, 6, 4, 2},
                    WindowCase{"WideSteps", {3}, {2}, {1}, {1}, Padding::same, 16, 32},
                    WindowCase{"Volume", {4, 5, 6}, {2, 3, 3}, {1, 1, 1}, {1, 1, 1}, Padding::valid, 2, 3},
                    WindowCase{"VolumeWithStrides", {5, 4, 6}, {3, 2, 3}, {2, 1, 2}, {1, 1, 1}, Padding::same, 2, 3},
                    WindowCase{"VolumeWithDistance", {6, 5, 7}, {2, 2, 3}, {1, 1, 1}, {3, 2, 1}, Padding::same, 1, 2},
                    WindowCase{"GroupedVolume", {3, 4, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, Padding::same, 4, 6, 2},
                    WindowCase{"FlatVolume", {1, 5, 4}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, Padding::same, 2, 3},
                    WindowCase{"WideVolume", {2, 2, 1}, {2, 1, 1}, {1, 1, 1}, {1, 1, 1}, Padding::same, 16, 16}),
    [](const auto& instance) { return instance.param.name; });

TEST(Conv1D, KeepsKerasShapesOfKernelAndOutput) {
  const Sequential model{Input{20, 6}, Conv1D{8, 3, {.strides = 2, .padding = Padding::causal, .groups = 2}}};

  EXPECT_EQ(model.parameters().entries()[0].shape, (Shape{3, 3, 8}));
  EXPECT_EQ(model.parameters().entries()[1].shape, (Shape{8}));
  EXPECT_EQ(model.output_shape(), (Shape{10, 8}));
}

TEST(Conv1D, WithCausalPaddingSeesNoLaterStep) {
  const Sequential model{Input{6, 1},
                         Conv1D{1, 3, {.padding = Padding::causal, .dilation_rate = 2, .use_bias = false}}};
  ModelProgram program(model, 1);
  const std::vector<float> kernel(model.parameters().float_count(), 1.0F);
  const std::vector<float> steps = {1, 10, 100, 1000, 10000, 100000};

  const auto outputs = program.forward_training(steps, 1, kernel, {});

  EXPECT_THAT(outputs, ElementsAre(1, 10, 101, 1010, 10101, 101010));
}

TEST(Conv3D, KeepsKerasShapesOfKernelAndOutput) {
  const Sequential model{Input{8, 9, 10, 2}, Conv3D{4, {1, 2, 3}, {.strides = {1, 2, 3}}}};

  EXPECT_EQ(model.parameters().entries()[0].shape, (Shape{1, 2, 3, 2, 4}));
  EXPECT_EQ(model.output_shape(), (Shape{8, 4, 3, 4}));
}

// Computed by Keras 3.15.1 on JAX.
TEST(ConvolutionLayers, GiveKerasNumbers) {
  EXPECT_THAT(outputs_of_pattern({5, 2}, Conv1D{2, 3, {.padding = Padding::causal, .dilation_rate = 2}}),
              ElementsAre(-13, 8, -13, 17, -8, -18, -2, -15, 8, 7));
  EXPECT_THAT(outputs_of_pattern({6, 4}, Conv1D{4, 2, {.strides = 2, .groups = 2}}),
              ElementsAre(21, -3, -10, 5, 24, -1, -5, 38, 27, 1, 11, 5));
  EXPECT_THAT(outputs_of_pattern({2, 3, 2, 1}, Conv3D{2, 2, {.strides = {1, 2, 1}, .padding = Padding::same}}),
              ElementsAre(0, -19, 13, 8, 6, -5, 0, -4, -26, -3, 10, 5, 4, 10, 16, -8));
}

TEST(ConvolutionLayers, AreReadBackFromTheirText) {
  const Sequential sequence{
      Input{20, 4},
      Conv1D{8, 3, {.padding = Padding::causal, .dilation_rate = 2, .groups = 4, .activation = Activation::relu}}};
  const Sequential volume{Input{8, 9, 10, 2}, Conv3D{4, {1, 2, 3}, {.strides = {1, 2, 3}, .use_bias = false}}};

  EXPECT_EQ(Sequential::from_graph(sequence.graph()).graph(), sequence.graph());
  EXPECT_EQ(Sequential::from_graph(volume.graph()).graph(), volume.graph());
  EXPECT_THAT(sequence.graph(), HasSubstr(R"("kernel_size":[3],"strides":[1],"padding":"causal","dilation_rate":[2],)"
                                          R"("groups":4,"activation":"relu")"));
}

TEST(ConvolutionLayers, RefuseOptionsThatDoNotGoTogether) {
  EXPECT_THAT(refusal([] { Conv1D(4, 0); }), HasSubstr("Conv1D needs kernel extents from 1 to"));
  EXPECT_THAT(refusal([] { Conv1D(4, 3, {.strides = 2, .dilation_rate = 3}); }),
              HasSubstr("Conv1D needs strides or a dilation rate of 1, not strides [2] with a dilation rate of [3]"));
  EXPECT_THAT(refusal([] { Conv1D(5, 3, {.groups = 2}); }),
              HasSubstr("Conv1D needs filters that its 2 groups divide, not 5; take a multiple of 2"));
  EXPECT_THAT(refusal([] { Conv3D(4, 3, {.padding = Padding::causal}); }),
              HasSubstr("Conv3D needs padding valid or same, not causal"));
}

TEST(ConvolutionLayers, RefuseInputsThatTheyCannotTake) {
  EXPECT_THAT(refusal([] {
                (Sequential{Input{8, 8, 3}, Conv1D{4, 3}});
              }),
              HasSubstr("(Conv1D) cannot take an input of shape [8, 8, 3]: it needs an input [steps, channels]"));
  EXPECT_THAT(refusal([] {
                (Sequential{Input{8, 3}, Conv1D{4, 5, {.dilation_rate = 2}}});
              }),
              HasSubstr("it needs an input of at least 9, the size of its window, not 8; take a smaller window, or "
                        "Padding::same"));
  EXPECT_THAT(refusal([] {
                (Sequential{Input{8, 3}, Conv1D{4, 2, {.groups = 2}}});
              }),
              HasSubstr("it needs channels that its 2 groups divide, not 3"));
  EXPECT_THAT(refusal([] {
                (Sequential{Input{4, 4, 1}, Conv3D{4, 2}});
              }),
              HasSubstr("it needs an input [depth, height, width, channels]"));
}

}  // namespace
}  // namespace holdfast
