#include "holdfast/nn/transposed_convolution_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/nn/support/convolution_case.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using reference::Axes;
using reference::Values;
using testing::ElementsAre;
using testing::HasSubstr;

struct TransposedCase {
  WindowCase windows;
  std::vector<std::int64_t> output_padding;  // empty: not given
};

// Each input element adds itself times the kernel to the output, from its place times the stride on. What lies before
// the first place of the output or after its last one is lost. Sizes and first places are those of Keras's documents.
Values transposed_reference(const TransposedCase& tested, const Values& x, const Values& kernel, const Values& bias) {
  const WindowCase& c = tested.windows;
  const Axes extents = reference::axes_of(c.extents), sizes = reference::axes_of(c.kernel),
             strides = reference::axes_of(c.strides), dilation = reference::axes_of(c.dilation);
  Axes output = {1, 1, 1}, begin = {0, 0, 0};
  for (std::size_t axis = 3 - c.extents.size(); axis < 3; ++axis) {
    const std::int64_t reach = (sizes[axis] - 1) * dilation[axis] + 1, apart = (extents[axis] - 1) * strides[axis];
    const bool is_same = c.padding == Padding::same;
    if (tested.output_padding.empty()) {
      output[axis] = is_same ? extents[axis] * strides[axis] : apart + std::max(reach, strides[axis]);
      begin[axis] = is_same ? std::max<std::int64_t>(reach - strides[axis], 0) / 2 : 0;
    } else {
      const std::int64_t more = tested.output_padding[axis + c.extents.size() - 3];
      output[axis] = apart + (is_same ? reach % 2 : reach) + more;
      begin[axis] = is_same ? std::max<std::int64_t>(reach - reach % 2 - more, 0) / 2 : 0;
    }
  }
  const auto samples = static_cast<std::int64_t>(x.size()) / (extents[0] * extents[1] * extents[2] * c.channels);
  Values result;
  for (std::int64_t i = 0; i < samples * output[0] * output[1] * output[2]; ++i) {
    result.insert(result.end(), bias.begin(), bias.end());
  }
  std::size_t input = 0;
  for (std::int64_t n = 0; n < samples; ++n) {
    for (std::int64_t place = 0; place < extents[0] * extents[1] * extents[2];
         ++place, input += static_cast<std::size_t>(c.channels)) {
      const Axes at = {place / (extents[1] * extents[2]), place / extents[2] % extents[1], place % extents[2]};
      for (std::int64_t of_kernel = 0; of_kernel < sizes[0] * sizes[1] * sizes[2]; ++of_kernel) {
        const Axes step = {of_kernel / (sizes[1] * sizes[2]), of_kernel / sizes[2] % sizes[1], of_kernel % sizes[2]};
        Axes to{};
        bool is_inside = true;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          to[axis] = at[axis] * strides[axis] + step[axis] * dilation[axis] - begin[axis];
          is_inside = is_inside && to[axis] >= 0 && to[axis] < output[axis];
        }
        if (!is_inside) continue;
        const std::int64_t first = ((n * output[0] + to[0]) * output[1] + to[1]) * output[2] + to[2];
        for (std::int64_t filter = 0; filter < c.filters; ++filter) {
          for (std::int64_t channel = 0; channel < c.channels; ++channel) {
            const std::int64_t weight = (of_kernel * c.filters + filter) * c.channels + channel;
            result[static_cast<std::size_t>(first * c.filters + filter)] +=
                x[input + static_cast<std::size_t>(channel)] * kernel[static_cast<std::size_t>(weight)];
          }
        }
      }
    }
  }
  return result;
}

template <class SelfLayer, class Extent>
void expect_transposed_matches(const TransposedCase& tested) {
  const WindowCase& c = tested.windows;
  std::optional<Extent> output_padding;
  if (!tested.output_padding.empty()) output_padding = extent_of<Extent>(tested.output_padding);
  const SelfLayer layer(c.filters, extent_of<Extent>(c.kernel),
                        {.strides = extent_of<Extent>(c.strides),
                         .padding = c.padding,
                         .output_padding = output_padding,
                         .dilation_rate = extent_of<Extent>(c.dilation)});
  const auto reference = [&](const Values& x, const std::vector<Values>& p) {
    return transposed_reference(tested, x, p[0], p[1]);
  };
  expect_matches(sample_shape(c), layer, reference, Shape(c.kernel).element_count() * c.channels);
}

class TransposedCases : public testing::TestWithParam<TransposedCase> {};

TEST_P(TransposedCases, OutputsAndGradientsAreThoseOfTheReference) {
  const TransposedCase& tested = GetParam();
  switch (tested.windows.extents.size()) {
    case 1:
      return expect_transposed_matches<Conv1DTranspose, std::int64_t>(tested);
    case 2:
      return expect_transposed_matches<Conv2DTranspose, Extent2D>(tested);
    default:
      return expect_transposed_matches<Conv3DTranspose, Extent3D>(tested);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, TransposedCases,
    testing::Values(
        TransposedCase{{"Steps", {5}, {3}, {2}, {1}, Padding::valid, 2, 3}, {}},
        TransposedCase{{"StepsFurtherApartThanTheKernel", {4}, {2}, {3}, {1}, Padding::valid, 2, 1}, {}},
        TransposedCase{{"PaddedSteps", {4}, {3}, {2}, {1}, Padding::same, 2, 3}, {1}},
        TransposedCase{{"PaddedStepsOfAnEvenKernel", {4}, {4}, {3}, {1}, Padding::same, 1, 2}, {0}},
        TransposedCase{{"StepsOfAKernelOfOne", {3}, {1}, {4}, {1}, Padding::same, 2, 2}, {3}},
        TransposedCase{{"Image", {3, 4}, {3, 2}, {2, 1}, {1, 1}, Padding::same, 3, 2}, {}},
        TransposedCase{{"ImageWithOutputPadding", {3, 2}, {3, 4}, {2, 3}, {1, 1}, Padding::same, 2, 2}, {1, 2}},
        TransposedCase{{"UnpaddedImageWithOutputPadding", {2, 3}, {2, 3}, {2, 2}, {1, 1}, Padding::valid, 2, 1},
                       {1, 0}},
        TransposedCase{{"ImageWithDistance", {4, 5}, {3, 2}, {1, 1}, {2, 3}, Padding::same, 2, 2}, {}},
        TransposedCase{{"WideImage", {2, 2}, {2, 1}, {2, 2}, {1, 1}, Padding::same, 16, 16}, {}},
        TransposedCase{{"Volume", {2, 3, 2}, {2, 3, 2}, {1, 2, 2}, {1, 1, 1}, Padding::same, 2, 2}, {}}),
    [](const auto& instance) { return instance.param.windows.name; });

// Computed by Keras 3.15.1 on JAX.
TEST(TransposedConvolutionLayers, GiveKerasNumbers) {
  EXPECT_THAT(outputs_of_pattern({3, 2}, Conv1DTranspose{2, 2, {.strides = 3}}),
              ElementsAre(20, -2, -12, 1, 1, 2, 17, -8, 0, -11, 1, 2, -8, 8, 1, 10, 1, 2));
  EXPECT_THAT(outputs_of_pattern({4, 1}, Conv1DTranspose{2, 3, {.strides = 2, .padding = Padding::same}}),
              ElementsAre(16, -8, 1, 12, -20, 1, 1, -2, 13, 0, 1, 6, -20, 10, 1, -8));
  EXPECT_THAT(
      outputs_of_pattern({4, 1}, Conv1DTranspose{1, 4, {.strides = 3, .padding = Padding::same, .output_padding = 1}}),
      ElementsAre(-9, 1, 5, 5, 1, 3, -3, 1, -10, 11));
  EXPECT_THAT(
      outputs_of_pattern({4, 1}, Conv1DTranspose{1, 5, {.strides = 3, .padding = Padding::same, .output_padding = 2}}),
      ElementsAre(-9, 1, 5, -10, 1, 3, 3, 1, -10, 5, 1, -9));
  EXPECT_THAT(
      outputs_of_pattern({3, 1}, Conv1DTranspose{1, 1, {.strides = 4, .padding = Padding::same, .output_padding = 3}}),
      ElementsAre(16, 1, 1, 1, -5, 1, 1, 1, 7, 1, 1, 1));
  EXPECT_THAT(outputs_of_pattern({3, 1}, Conv1DTranspose{1, 2, {.strides = 3, .output_padding = 0}}),
              ElementsAre(16, -9, 1, -5, 5, 1, 7, -3));
  EXPECT_THAT(outputs_of_pattern({5, 1}, Conv1DTranspose{1, 3, {.padding = Padding::same, .dilation_rate = 2}}),
              ElementsAre(-3, -10, -6, 11, 3));
  EXPECT_THAT(
      outputs_of_pattern(
          {2, 3, 2},
          Conv2DTranspose{1, {3, 2}, {.strides = 2, .padding = Padding::same, .output_padding = Extent2D{1, 1}}}),
      ElementsAre(20, -3, 17, -9, -8, -12, 0, 0, -12, 1, -21, 17, 15, 14, -4, 13, -3, -8, -4, -7));
  EXPECT_THAT(outputs_of_pattern({2, 2, 1}, Conv2DTranspose{2, 2, {.strides = {1, 2}}}),
              ElementsAre(16, -8, 1, 12, -5, 6, 1, -2, -8, -7, 6, 21, -8, 14, -1, -14, -5, 0, 3, 8, 16, 7, -4, -13));
  EXPECT_THAT(outputs_of_pattern({2, 2, 2, 2}, Conv3DTranspose{1, 2, {.strides = {1, 2, 1}, .padding = Padding::same}}),
              ElementsAre(20, 13, -12, -1, -8, -5, 1, 21, 9, 0, -15, 0, -7, -11, 9, 16));
}

TEST(TransposedConvolutionLayers, KeepKerasNamesAndShapes) {
  const Sequential model{Input{4, 5, 3}, Conv2DTranspose{6, {2, 3}, {.strides = 2, .padding = Padding::same}}};

  EXPECT_EQ(model.parameters().entries()[0].name, "conv2d_transpose/kernel");
  EXPECT_EQ(model.parameters().entries()[0].shape, (Shape{2, 3, 6, 3}));
  EXPECT_EQ(model.parameters().entries()[1].shape, (Shape{6}));
  EXPECT_EQ(model.output_shape(), (Shape{8, 10, 6}));
}

TEST(TransposedConvolutionLayers, AreReadBackFromTheirText) {
  const Sequential model{Input{4, 5, 3}, Conv2DTranspose{6, 3, {.strides = {3, 2}, .output_padding = Extent2D{2, 1}}},
                         Conv2DTranspose{2, 3, {.padding = Padding::same, .dilation_rate = 2, .use_bias = false}}};

  EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
  EXPECT_THAT(model.graph(), HasSubstr(R"("output_padding":[2,1])"));
}

TEST(TransposedConvolutionLayers, RefuseWhatTheyCannotDo) {
  EXPECT_THAT(refusal([] { Conv1DTranspose(2, 3, {.strides = 2, .output_padding = 2}); }),
              HasSubstr("Conv1DTranspose needs an output padding from 0 to below the stride of its axis, not [2] with "
                        "strides [2]"));
  EXPECT_THAT(refusal([] { Conv1DTranspose(2, 3, {.padding = Padding::causal}); }),
              HasSubstr("Conv1DTranspose needs padding valid or same, not causal"));
  EXPECT_THAT(refusal([] { Conv3DTranspose(2, 3, {.strides = 2, .dilation_rate = 2}); }),
              HasSubstr("Conv3DTranspose needs strides or a dilation rate of 1"));
  EXPECT_THAT(refusal([] {
                (Sequential{Input{4, 3}, Conv2DTranspose{2, 3}});
              }),
              HasSubstr("(Conv2DTranspose) cannot take an input of shape [4, 3]: it needs an input [height, width"));
  // An output without elements.
  EXPECT_THAT(refusal([] {
                (Sequential{Input{1, 3}, Conv1DTranspose{2, 4, {.padding = Padding::same, .output_padding = 0}}});
              }),
              HasSubstr("it needs output extents from 1 to"));
}

}  // namespace
}  // namespace holdfast
