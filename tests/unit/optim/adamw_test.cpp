// AdamW against its formula in double, and its relation to Adam.

#include "holdfast/optim/adamw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "holdfast/base/error.h"
#include "holdfast/optim/adam.h"
#include "holdfast/optim/piecewise_constant_decay.h"
#include "unit/optim/support/training_run.h"

namespace holdfast {
namespace {

using testing::ElementsAre;

TEST(AdamW, ShrinksParametersThatHaveNoGradient) {
  std::vector<float> parameters = {8.0F, -4.0F};
  std::vector<float> m(2);
  std::vector<float> v(2);
  const std::vector<std::span<float>> slots = {m, v};

  AdamW{{.learning_rate = 0.5F, .weight_decay = 0.25F}}.update(1, parameters, std::vector<float>(2), slots);

  EXPECT_THAT(parameters, ElementsAre(7.0F, -3.5F));  // times 1 - 0.5 * 0.25
}

TEST(AdamW, KeepsTheDecayOutOfItsMoments) {
  std::vector<float> adam_parameters = {8.0F};
  std::vector<float> adamw_parameters = {8.0F};
  std::vector<float> adam_m(1), adam_v(1), adamw_m(1), adamw_v(1);

  Adam{0.01F}.update(1, adam_parameters, std::vector<float>{0.5F}, std::vector<std::span<float>>{adam_m, adam_v});
  AdamW{0.01F}.update(1, adamw_parameters, std::vector<float>{0.5F}, std::vector<std::span<float>>{adamw_m, adamw_v});

  EXPECT_EQ(adam_m, adamw_m);
  EXPECT_EQ(adam_v, adamw_v);
  EXPECT_LT(adamw_parameters[0], adam_parameters[0]);
}

TEST(AdamW, WithoutDecayGivesTheBitsOfAdam) {
  std::vector<float> adam_parameters = {0.3F, -0.7F};
  std::vector<float> adamw_parameters = adam_parameters;
  std::vector<float> adam_m(2), adam_v(2), adamw_m(2), adamw_v(2);
  const std::vector<float> gradients = {0.1F, -0.2F};

  Adam{}.update(1, adam_parameters, gradients, std::vector<std::span<float>>{adam_m, adam_v});
  AdamW{{.weight_decay = 0}}.update(1, adamw_parameters, gradients, std::vector<std::span<float>>{adamw_m, adamw_v});

  EXPECT_EQ(adam_parameters, adamw_parameters);
}

// The bound of Adam, and one more rounding of the parameter per step: the product with the factor of the decay. That
// factor, near 1, is itself rounded once.
TEST(AdamW, FollowsItsFormulaForAHundredSteps) {
  constexpr float kRate = 0.01F;
  const AdamWOptions options{.learning_rate = kRate, .weight_decay = 0.1F};

  const Deviation deviation =
      largest_deviation(AdamW{options}, [&](std::int64_t step, double gradient, ReferenceElement& element) {
        double& m = element.slots[0];
        double& v = element.slots[1];
        const auto t = static_cast<double>(step);
        element.parameter -= element.parameter * options.weight_decay * kRate;
        m += (gradient - m) * (1.0 - options.beta_1);
        v += (gradient * gradient - v) * (1.0 - options.beta_2);
        const double rate = kRate * std::sqrt(1.0 - std::pow(options.beta_2, t)) / (1.0 - std::pow(options.beta_1, t));
        element.parameter -= m * rate / (std::sqrt(v) + options.epsilon);
      });

  EXPECT_LT(deviation.parameter,
            100 * kHalfUlp * (3 * deviation.largest_parameter + 500 * 3.2 * static_cast<double>(kRate)));
}

// Keras multiplies with the rate of the step, too.
TEST(AdamW, DecaysWeightsByTheRateOfItsStep) {
  std::vector<float> parameters = {8.0F};
  std::vector<float> m(1);
  std::vector<float> v(1);
  const std::vector<std::span<float>> slots = {m, v};
  const AdamW adamw{{.learning_rate = PiecewiseConstantDecay{{0}, {0.5F, 0.25F}}, .weight_decay = 0.5F}};

  adamw.update(1, parameters, std::vector<float>(1), slots);
  adamw.update(2, parameters, std::vector<float>(1), slots);

  EXPECT_THAT(parameters, ElementsAre(8.0F * 0.75F * 0.875F));
}

TEST(AdamW, HasTheDefaultsOfKeras) {
  EXPECT_EQ(
      AdamW{}.configuration(),
      R"({"kind":"adamw","learning_rate":0.001,"weight_decay":0.004,"beta_1":0.9,"beta_2":0.999,"epsilon":1e-07})");
}

TEST(AdamW, TakesALearningRateOrOptions) {
  EXPECT_EQ(AdamW{1e-2F}.configuration(), AdamW{{.learning_rate = 1e-2F}}.configuration());
}

TEST(AdamW, RefusesOptionsOutOfTheirRange) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const AdamWOptions& options :
       {AdamWOptions{.learning_rate = -1e-3F}, AdamWOptions{.weight_decay = -0.1F}, AdamWOptions{.weight_decay = kNan},
        AdamWOptions{.beta_1 = 1.0F}, AdamWOptions{.beta_2 = kNan}, AdamWOptions{.epsilon = 0}}) {
    try {
      const AdamW adamw{options};
      ADD_FAILURE() << "took " << adamw.configuration();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

}  // namespace
}  // namespace holdfast
