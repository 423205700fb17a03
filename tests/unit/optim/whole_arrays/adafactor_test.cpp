// Adafactor's factors, its padding, and the options that it refuses. Its steps are compared with Keras's in
// keras_cases_test.cpp.

#include "holdfast/optim/adafactor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "holdfast/base/error.h"
#include "holdfast/core/shape.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

struct FactoredArrays {
  std::vector<float> parameters;
  std::vector<float> rows;
  std::vector<float> columns;
};

FactoredArrays after_an_update(const Adafactor& optimizer, const Shape& shape, std::vector<float> parameters,
                               const std::vector<float>& gradients) {
  FactoredArrays arrays{.parameters = std::move(parameters), .rows = {}, .columns = {}};
  arrays.rows.resize(arrays.parameters.size());
  arrays.columns.resize(arrays.parameters.size());
  const std::vector<std::span<float>> slots = {arrays.rows, arrays.columns};
  optimizer.update_array({.name = "w", .shape = &shape}, 1, arrays.parameters, gradients, slots);
  return arrays;
}

// At the first update, the factors are the means of the squares.
TEST(Adafactor, RepeatsTheFactorsOfAMatrix) {
  const FactoredArrays found = after_an_update(Adafactor{}, Shape{2, 2}, {1, 1, 1, 1}, {1, 2, 3, 4});

  EXPECT_THAT(found.rows, ElementsAre(2.5F, 2.5F, 12.5F, 12.5F));
  EXPECT_THAT(found.columns, ElementsAre(5, 10, 5, 10));
}

// The direction of a row and a column is 1, so the step is the rate, times the scale of the parameters.
TEST(Adafactor, MovesAnArrayByItsOwnScale) {
  const FactoredArrays small = after_an_update(Adafactor{0.5F}, Shape{4}, {2, -2, 2, -2}, {1, -1, 1, 1});

  EXPECT_THAT(small.parameters, ElementsAre(FloatEq(1), FloatEq(-1), FloatEq(1), FloatEq(-3)));
}

TEST(Adafactor, LeavesPaddingZero) {
  const FactoredArrays padded =
      after_an_update(Adafactor{}, Shape{2, 2}, {1, 2, 3, 4, 0, 0, 0, 0}, {1, 2, 3, 4, 0, 0, 0, 0});
  const FactoredArrays plain = after_an_update(Adafactor{}, Shape{2, 2}, {1, 2, 3, 4}, {1, 2, 3, 4});

  for (const auto& [with, without] :
       {std::pair{padded.parameters, plain.parameters}, {padded.rows, plain.rows}, {padded.columns, plain.columns}}) {
    EXPECT_TRUE(std::equal(without.begin(), without.end(), with.begin()));
    EXPECT_TRUE(std::all_of(with.begin() + 4, with.end(), [](float value) { return value == 0; }));
  }
}

TEST(Adafactor, StaysFiniteWithoutGradients) {
  const FactoredArrays found = after_an_update(Adafactor{}, Shape{2, 2}, {1, 2, 3, 4}, {0, 0, 0, 0});

  EXPECT_EQ(found.parameters, (std::vector<float>{1, 2, 3, 4}));
}

TEST(Adafactor, HasTheDefaultsOfKeras) {
  EXPECT_EQ(Adafactor{}.configuration(),
            R"({"kind":"adafactor","learning_rate":0.001,"beta_2_decay":-0.8,"epsilon_1":1e-30,"epsilon_2":0.001,)"
            R"("clip_threshold":1,"weight_decay":0})");
  EXPECT_THAT(Adafactor{}.slot_names(), ElementsAre("row_velocity", "column_velocity"));
}

TEST(Adafactor, RefusesOptionsOutOfTheirRange) {
  constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
  for (const AdafactorOptions& options : {AdafactorOptions{.learning_rate = -0.1F}, AdafactorOptions{.beta_2_decay = 0},
                                          AdafactorOptions{.epsilon_1 = 0}, AdafactorOptions{.epsilon_2 = kNoNumber},
                                          AdafactorOptions{.clip_threshold = 0}, AdafactorOptions{.weight_decay = -1},
                                          AdafactorOptions{.clip_norm = 0}, AdafactorOptions{.ema_momentum = 1.5F}}) {
    try {
      const Adafactor optimizer{options};
      ADD_FAILURE() << "took " << optimizer.configuration();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

}  // namespace
}  // namespace holdfast
