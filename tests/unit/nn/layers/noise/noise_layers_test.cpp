#include "holdfast/nn/noise_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "holdfast/nn/sequential.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/function_layer.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

Floats noisy(const Sequential& model, float value, std::int64_t samples, const RandomKey& draws) {
  ModelProgram program(model, 1);
  const Floats values(static_cast<std::size_t>(samples * model.input_shape().element_count()), value);
  const auto outputs = program.forward_training(values, samples, {}, draws);
  return {outputs.begin(), outputs.end()};
}

double moment(const Floats& values, double mean, int power) {
  double sum = 0;
  for (const float value : values) sum += std::pow(value - mean, power);
  return sum / static_cast<double>(values.size());
}

constexpr std::int64_t kNoiseElements = 40000;

// Sample moments of n normal draws deviate by s / sqrt(n), s^2 sqrt(2 / n) and s^4 sqrt(96 / n); five times that.
void expect_normal_noise(const Floats& values, double mean, double deviation) {
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(moment(values, 0, 1), mean, 5 * deviation / std::sqrt(n));
  EXPECT_NEAR(moment(values, mean, 2), std::pow(deviation, 2), 5 * std::pow(deviation, 2) * std::sqrt(2 / n));
  EXPECT_NEAR(moment(values, mean, 4), 3 * std::pow(deviation, 4), 5 * std::pow(deviation, 4) * std::sqrt(96 / n));
  // The share below each of some quantiles: a binomial count.
  for (const double quantile : {-3.0, -1.0, -0.1, 0.5, 2.0}) {
    const double share = 0.5 * std::erfc(-quantile / std::numbers::sqrt2);
    const auto below =
        std::count_if(values.begin(), values.end(), [&](float value) { return (value - mean) / deviation < quantile; });
    EXPECT_NEAR(static_cast<double>(below), share * n, 5 * std::sqrt(n * share * (1 - share)) + 1) << quantile;
  }
}

TEST(NoiseLayers, GaussianNoiseIsNormal) {
  expect_normal_noise(noisy(Sequential{Input{kNoiseElements}, GaussianNoise{0.5F}}, 3, 1, {.seed = 5}), 3, 0.5);
}

TEST(NoiseLayers, GaussianDropoutMultipliesByNormalNumbersAroundOne) {
  expect_normal_noise(noisy(Sequential{Input{kNoiseElements}, GaussianDropout{0.2F}}, 2, 1, {.seed = 6}), 2, 2 * 0.5);
}

TEST(NoiseLayers, AlphaDropoutKeepsMeanAndVarianceOfANormalInput) {
  const Sequential model{Input{kNoiseElements}, GaussianNoise{1}, AlphaDropout{0.3F}};
  const Floats values = noisy(model, 0, 1, {.seed = 7});

  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(moment(values, 0, 1), 0, 5 / std::sqrt(n));
  EXPECT_NEAR(moment(values, 0, 2), 1, 5 * std::sqrt(2 / n));
  // The limit of selu, scaled and shifted: no normal number comes so close to it by chance.
  const double limit = -1.6732632423543772 * 1.0507009873554805;
  const double scale = 1 / std::sqrt(0.7 * (1 + 0.3 * limit * limit));
  const double replaced = scale * limit - scale * limit * 0.3;
  const auto dropped =
      std::count_if(values.begin(), values.end(), [&](float value) { return std::abs(value - replaced) < 1e-6; });
  EXPECT_NEAR(static_cast<double>(dropped), 0.3 * n, 5 * std::sqrt(n * 0.3 * 0.7));
}

TEST(NoiseLayers, DrawsDoNotDependOnHowABatchIsCut) {
  for (const Sequential& model :
       {Sequential{Input{7}, GaussianNoise{0.5F}}, Sequential{Input{7}, GaussianDropout{0.5F}},
        Sequential{Input{7}, AlphaDropout{0.5F}}}) {
    const Floats whole = noisy(model, 1, 6, {.seed = 7, .step = 3, .first_sample = 20});
    Floats joined = noisy(model, 1, 2, {.seed = 7, .step = 3, .first_sample = 20});
    const Floats rest = noisy(model, 1, 4, {.seed = 7, .step = 3, .first_sample = 22});
    joined.insert(joined.end(), rest.begin(), rest.end());

    EXPECT_EQ(joined, whole);
    EXPECT_NE(noisy(model, 1, 6, {.seed = 7, .step = 4, .first_sample = 20}), whole);
    EXPECT_NE(noisy(model, 1, 6, {.seed = 8, .step = 3, .first_sample = 20}), whole);
  }
}

TEST(NoiseLayers, TheGradientOfNoiseIsThatOfItsInput) {
  const Sequential model{Input{8}, FunctionLayer([](const Value& x) { return x * 1.0F; }), GaussianDropout{0.5F}};
  ModelProgram program(model, 1);
  const Floats ones(8, 1.0F);
  Floats parameters(model.parameters().float_count()), gradients(parameters.size());

  const auto outputs = program.forward_training(ones, 1, parameters, {.seed = 3});
  const Floats factors(outputs.begin(), outputs.end());
  program.backward(ones, parameters, gradients, {});

  EXPECT_EQ(Floats(gradients.begin(), gradients.begin() + 8), factors);
}

TEST(NoiseLayers, InferenceChangesNothing) {
  Sequential model{Input{2}, GaussianNoise{0.5F}, GaussianDropout{0.5F}, AlphaDropout{0.5F}};
  model.set_weights({}, {});

  EXPECT_EQ(model.predict(Tensor({1, 2}, {3, 4})).values(), (Floats{3, 4}));
  EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
}

TEST(NoiseLayers, RefuseNumbersThatTheyCannotTake) {
  EXPECT_THAT(refusal([] { GaussianNoise{-0.5F}; }), HasSubstr("GaussianNoise needs a standard deviation from 0 to 1"));
  EXPECT_THAT(refusal([] { GaussianNoise{NAN}; }), HasSubstr("not nan"));
  EXPECT_THAT(refusal([] { GaussianDropout{1}; }), HasSubstr("GaussianDropout needs a rate from 0 to below 1, not 1"));
  EXPECT_THAT(refusal([] { AlphaDropout{-1}; }), HasSubstr("AlphaDropout needs a rate from 0 to below 1, not -1"));
}

}  // namespace
}  // namespace holdfast
