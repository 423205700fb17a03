#include "holdfast/nn/spatial_dropout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "holdfast/nn/sequential.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/function_layer.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

Floats trained_on_ones(const Sequential& model, std::int64_t samples, const RandomKey& draws) {
  ModelProgram program(model, 1);
  const Floats ones(static_cast<std::size_t>(samples * model.input_shape().element_count()), 1.0F);
  const auto outputs = program.forward_training(ones, samples, {}, draws);
  return {outputs.begin(), outputs.end()};
}

// [samples, positions, channels]: every position has the mask of the first one.
void expect_whole_channels(const Floats& mask, std::size_t samples, std::size_t positions, std::size_t channels) {
  std::size_t dropped = 0;
  for (std::size_t sample = 0; sample < samples; ++sample) {
    for (std::size_t channel = 0; channel < channels; ++channel) {
      const float first = mask[sample * positions * channels + channel];
      EXPECT_TRUE(first == 0 || first == 2) << first;
      if (first == 0) ++dropped;
      for (std::size_t position = 0; position < positions; ++position) {
        ASSERT_EQ(mask[(sample * positions + position) * channels + channel], first);
      }
    }
  }
  // 64 draws of probability 1/2: five standard deviations are 20.
  EXPECT_NEAR(static_cast<double>(dropped), static_cast<double>(samples * channels) / 2, 20);
}

TEST(SpatialDropout, DropsWholeChannels) {
  expect_whole_channels(trained_on_ones(Sequential{Input{5, 16}, SpatialDropout1D{0.5F}}, 4, {.seed = 1}), 4, 5, 16);
  expect_whole_channels(trained_on_ones(Sequential{Input{2, 3, 16}, SpatialDropout2D{0.5F}}, 4, {.seed = 1}), 4, 6, 16);
  expect_whole_channels(trained_on_ones(Sequential{Input{2, 3, 2, 16}, SpatialDropout3D{0.5F}}, 4, {.seed = 1}), 4, 12,
                        16);
}

TEST(SpatialDropout, TheMaskDoesNotDependOnHowABatchIsCut) {
  const Sequential model{Input{2, 8}, SpatialDropout1D{0.5F}};
  const Floats whole = trained_on_ones(model, 6, {.seed = 7, .step = 3, .first_sample = 20});

  Floats joined = trained_on_ones(model, 2, {.seed = 7, .step = 3, .first_sample = 20});
  const Floats rest = trained_on_ones(model, 4, {.seed = 7, .step = 3, .first_sample = 22});
  joined.insert(joined.end(), rest.begin(), rest.end());

  EXPECT_EQ(joined, whole);
  EXPECT_NE(trained_on_ones(model, 6, {.seed = 7, .step = 4, .first_sample = 20}), whole);
  EXPECT_NE(trained_on_ones(model, 6, {.seed = 8, .step = 3, .first_sample = 20}), whole);
}

TEST(SpatialDropout, TheGradientPassesWhereTheValueDid) {
  const Sequential model{Input{3, 8}, FunctionLayer([](const Value& x) { return x * 1.0F; }), SpatialDropout1D{0.5F}};
  ModelProgram program(model, 1);
  const Floats ones(24, 1.0F);
  Floats parameters(model.parameters().float_count()), gradients(parameters.size());

  const auto outputs = program.forward_training(ones, 1, parameters, {.seed = 3});
  const Floats mask(outputs.begin(), outputs.end());
  program.backward(ones, parameters, gradients, {});

  EXPECT_EQ(Floats(gradients.begin(), gradients.begin() + 24), mask);
}

TEST(SpatialDropout, InferenceChangesNothing) {
  Sequential model{Input{1, 2}, SpatialDropout1D{0.5F}};
  model.set_weights({}, {});

  EXPECT_EQ(model.predict(Tensor({1, 1, 2}, {3, 4})).values(), (Floats{3, 4}));
  EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
}

TEST(SpatialDropout, RefusesRatesAndInputsThatItCannotTake) {
  EXPECT_THAT(refusal([] { SpatialDropout1D{1.0F}; }),
              HasSubstr("SpatialDropout1D needs a rate from 0 to below 1, not 1"));
  EXPECT_THAT(refusal([] { SpatialDropout2D{-0.5F}; }), HasSubstr("SpatialDropout2D needs a rate"));
  EXPECT_THAT(refusal([] { SpatialDropout3D{std::numeric_limits<float>::quiet_NaN()}; }),
              HasSubstr("SpatialDropout3D needs a rate"));
  EXPECT_THAT(refusal([] {
                Sequential{Input{4}, SpatialDropout1D{0.5F}};
              }),
              HasSubstr("it needs an input [steps, channels]"));
}

}  // namespace
}  // namespace holdfast
