#include "holdfast/nn/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "holdfast/base/error.h"
#include "holdfast/nn/dense.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/reference_check.h"

namespace holdfast {
namespace {

std::vector<float> train(ModelProgram& program, std::int64_t samples, std::int64_t elements, const RandomKey& draws) {
  const std::vector<float> ones(static_cast<std::size_t>(samples * elements), 1.0F);
  const auto outputs = program.forward_training(ones, samples, {}, draws);
  return {outputs.begin(), outputs.end()};
}

TEST(Dropout, TheMaskDoesNotDependOnHowABatchIsCut) {
  ModelProgram program(Sequential{Input{5, 3}, Dropout{0.5F}}, 1);
  const std::vector<float> whole = train(program, 10, 15, {.seed = 7, .step = 3, .first_sample = 20});

  std::vector<float> joined = train(program, 4, 15, {.seed = 7, .step = 3, .first_sample = 20});
  const std::vector<float> rest = train(program, 6, 15, {.seed = 7, .step = 3, .first_sample = 24});
  joined.insert(joined.end(), rest.begin(), rest.end());

  EXPECT_EQ(joined, whole);
}

TEST(Dropout, EachSampleStepSeedAndLayerHasItsOwnMask) {
  ModelProgram program(Sequential{Input{64}, Dropout{0.5F}}, 1);
  // A rate so small that nothing is dropped stands before the layer, which only moves its place.
  ModelProgram moved(Sequential{Input{64}, Dropout{0.0F}, Dropout{0.5F}}, 1);
  const RandomKey draws = {.seed = 1, .step = 2, .first_sample = 3};
  const std::vector<float> mask = train(program, 1, 64, draws);

  EXPECT_NE(train(program, 1, 64, {.seed = 1, .step = 2, .first_sample = 4}), mask);
  EXPECT_NE(train(program, 1, 64, {.seed = 1, .step = 3, .first_sample = 3}), mask);
  EXPECT_NE(train(program, 1, 64, {.seed = 2, .step = 2, .first_sample = 3}), mask);
  EXPECT_NE(train(moved, 1, 64, draws), mask);
  EXPECT_EQ(train(program, 1, 64, draws), mask);
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  constexpr std::int64_t kElements = 40000;
  const float rate = 0.2F;
  ModelProgram program(Sequential{Input{kElements}, Dropout{rate}}, 1);

  const std::vector<float> outputs = train(program, 1, kElements, {.seed = 5});

  std::int64_t dropped = 0;
  for (const float output : outputs) {
    if (output == 0) {
      ++dropped;
    } else {
      ASSERT_EQ(output, 1.0F / (1.0F - rate));
    }
  }
  // A binomial count: standard deviation sqrt(n p (1 - p)) = 80; five of them.
  EXPECT_NEAR(static_cast<double>(dropped), 0.2 * kElements, 5 * std::sqrt(kElements * 0.2 * 0.8));
}

TEST(Dropout, TheGradientPassesWhereTheValueDid) {
  const Sequential model{Input{1}, Dense{64, {.use_bias = false}}, Dropout{0.25F}};
  ModelProgram program(model, 1);
  const std::vector<float> ones(64, 1.0F);
  const std::vector<float> features = {1.0F};
  std::vector<float> gradients(64, 77.0F);

  const auto outputs = program.forward_training(features, 1, ones, {.seed = 9});
  const std::vector<float> mask(outputs.begin(), outputs.end());
  program.backward(ones, ones, gradients, {});

  // With inputs, weights and output gradients of 1 each gradient equals its output: the mask.
  EXPECT_EQ(gradients, mask);
}

TEST(Dropout, InferenceChangesNothing) {
  const Sequential model{Input{8}, Dropout{0.9F}};
  const std::vector<float> features = reference::random_values(24, 1);
  ModelProgram program(model, 1);

  const auto outputs = program.forward_inference(features, 3, {}, {});

  EXPECT_EQ(std::vector<float>(outputs.begin(), outputs.end()), features);
}

TEST(Dropout, RefusesARateThatKeepsNothing) {
  EXPECT_THROW(Dropout{1.0F}, Error);
  EXPECT_THROW(Dropout{-0.1F}, Error);
  EXPECT_THROW(Dropout{std::numeric_limits<float>::quiet_NaN()}, Error);
}

}  // namespace
}  // namespace holdfast
