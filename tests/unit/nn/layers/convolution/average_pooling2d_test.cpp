#include "holdfast/nn/average_pooling2d.h"

#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/conv2d.h"
#include "unit/nn/support/pooling_case.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

using reference::Values;

class AveragePooling2DCases : public testing::TestWithParam<PoolingCase> {};

// A convolution of 1 x 1 stands before the pooling, so that the gradient of its input counts as well.
TEST_P(AveragePooling2DCases, OutputsAndGradientsAreThoseOfTheReference) {
  const PoolingCase& c = GetParam();
  constexpr std::int64_t kSamples = 2;
  const Sequential model{Input{c.height, c.width, 2}, Conv2D{c.channels, 1},
                         AveragePooling2D{c.pool, {.strides = c.strides, .padding = c.padding}}};
  const auto reference = [&](const Values& x, const std::vector<Values>& p) {
    const Values before = reference::convolution(x, {kSamples, c.height, c.width, 2}, p[0], p[1], c.channels, {});
    return reference::average_pooling(
        before, {kSamples, c.height, c.width, c.channels},
        {c.pool.height, c.pool.width, c.strides.height, c.strides.width, c.padding == Padding::same});
  };

  // A gradient sums over the elements of all windows. A path is in sums over all positions, a window and 2 channels.
  const auto positions = static_cast<double>(kSamples * model.output_shape()[0] * model.output_shape()[1]);
  const auto window = static_cast<double>(c.pool.height * c.pool.width);
  reference::expect_training_matches(model, kSamples, reference,
                                     {.paths = positions * window + 3, .roundings = positions + window + 5});
}

INSTANTIATE_TEST_SUITE_P(Shapes, AveragePooling2DCases, testing::ValuesIn(pooling_cases()),
                         [](const auto& instance) { return instance.param.name; });

TEST(AveragePooling2D, UsesTheWindowAsStridesByDefault) {
  const Sequential model{Input{9, 10, 4}, AveragePooling2D{{3, 2}}};

  EXPECT_EQ(model.output_shape(), (Shape{3, 5, 4}));
}

TEST(AveragePooling2D, RefusesImpossibleNumbers) {
  EXPECT_THROW(AveragePooling2D{0}, Error);
  EXPECT_THROW((AveragePooling2D{2, {.strides = Extent2D{0, 1}}}), Error);
}

}  // namespace
}  // namespace holdfast
