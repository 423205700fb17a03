// Which arrays Muon updates itself, what its steps are like, and the options that it refuses. Its steps are compared
// with Keras's in keras_cases_test.cpp.

#include "holdfast/optim/muon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "holdfast/base/error.h"
#include "holdfast/optim/adam.h"

namespace holdfast {
namespace {

using testing::Each;

// Parameters and slots after a step.
struct MuonStep {
  std::vector<float> parameters;
  std::vector<float> momentum = std::vector<float>(parameters.size());
  std::vector<float> velocity = std::vector<float>(parameters.size());
};

MuonStep step_of(const Muon& optimizer, const std::string& name, const Shape& shape, std::vector<float> parameters,
                 const std::vector<float>& gradients) {
  MuonStep step{.parameters = std::move(parameters)};
  const std::vector<std::span<float>> slots = {step.momentum, step.velocity};
  optimizer.update_array({.name = name, .shape = &shape}, 1, step.parameters, gradients, slots);
  return step;
}

const std::vector<float> kGradients = {4, 0, 0, 0, 0.5F, 0};

TEST(Muon, MovesAlongAllDirectionsAlike) {
  // The gradient has the singular values 4 and 0.5. Those of the step are near each other, and near 1 times its scale.
  const Muon optimizer{{.learning_rate = 1, .weight_decay = 0, .nesterov = false, .rms_rate = std::nullopt}};

  const std::vector<float> wide = step_of(optimizer, "w", Shape{2, 3}, std::vector<float>(6), kGradients).parameters;
  const std::vector<float> tall =
      step_of(optimizer, "w", Shape{3, 2}, std::vector<float>(6), {4, 0, 0, 0.5F, 0, 0}).parameters;

  for (const float moved : {wide[0], wide[4], tall[0], tall[3]}) EXPECT_NEAR(-moved, 1, 0.35F);
  EXPECT_NEAR(wide[0], tall[0], 1e-6F);
}

TEST(Muon, ScalesStepsByTheLongerSide) {
  const auto first_step = [](std::optional<float> rms_rate) {
    const Muon optimizer{{.learning_rate = 1, .weight_decay = 0, .rms_rate = rms_rate}};
    return step_of(optimizer, "dense/kernel", Shape{2, 3}, std::vector<float>(6), kGradients).parameters[0];
  };

  EXPECT_NEAR(first_step(0.5F) / first_step(std::nullopt), 0.5 * std::sqrt(3.0), 1e-6);
}

TEST(Muon, LeavesOtherArraysToAdam) {
  const Muon optimizer{{.learning_rate = 0.25F, .adam_weight_decay = 0, .adam_arrays = {"output"}}};
  const std::vector<float> ones(6, 1.0F);

  for (const auto& [name, shape] : {std::pair{"dense/bias", Shape{6}},
                                    {"conv/kernel", Shape{1, 2, 3}},
                                    {"word_Embedding/table", Shape{2, 3}},
                                    {"output/kernel", Shape{2, 3}}}) {
    const MuonStep step = step_of(optimizer, name, shape, std::vector<float>(6), ones);
    EXPECT_THAT(step.parameters, Each(testing::FloatNear(-0.25F, 1e-5F))) << name;
    EXPECT_NE(step.velocity[0], 0) << name;
  }
  EXPECT_EQ(step_of(optimizer, "dense/kernel", Shape{2, 3}, std::vector<float>(6), ones).velocity[0], 0);
}

TEST(Muon, TakesNoNoticeOfPadding) {
  const Muon optimizer{0.25F};
  std::vector<float> padded_gradients = kGradients;
  padded_gradients.resize(16);

  const MuonStep padded = step_of(optimizer, "w", Shape{2, 3}, std::vector<float>(16), padded_gradients);

  EXPECT_EQ(std::vector<float>(padded.parameters.begin(), padded.parameters.begin() + 6),
            step_of(optimizer, "w", Shape{2, 3}, std::vector<float>(6), kGradients).parameters);
  EXPECT_EQ(padded.parameters[6], 0);
}

TEST(Muon, LeavesAMatrixWithoutAGradientAlone) {
  const MuonStep step =
      step_of(Muon{{.weight_decay = 0}}, "w", Shape{2, 3}, std::vector<float>(6, 2.0F), std::vector<float>(6));

  EXPECT_THAT(step.parameters, Each(2));
}

TEST(Muon, DecaysNothingWithoutWeightDecay) {
  const auto optimizer = Muon{{.learning_rate = 0.5F, .exclude_from_weight_decay = {"w"}}}.with_weight_decay_times(0);
  std::vector<float> parameters(4, 2.0F), momentum(4), velocity(4);
  const std::vector<std::span<float>> slots = {momentum, velocity};
  const Shape shape = {4};

  optimizer->update_array({.name = "w", .shape = &shape}, 1, parameters, std::vector<float>(4), slots);

  EXPECT_THAT(parameters, Each(2));
}

TEST(Muon, HasTheDefaultsOfKeras) {
  EXPECT_EQ(Muon{}.configuration(),
            R"({"kind":"muon","learning_rate":0.001,"adam_beta_1":0.9,"adam_beta_2":0.999,"adam_weight_decay":0.004,)"
            R"("epsilon":1e-07,"weight_decay":0.004,"adam_arrays":[],"exclude_embeddings":true,"muon_a":3.4445,)"
            R"("muon_b":-4.775,"muon_c":2.0315,"adam_lr_ratio":1,"momentum":0.95,"ns_steps":5,"nesterov":true,)"
            R"("rms_rate":0.2})");
}

TEST(Muon, RefusesOptionsOutOfTheirRange) {
  for (const MuonOptions& options :
       {MuonOptions{.learning_rate = -0.1F}, MuonOptions{.adam_beta_1 = 1}, MuonOptions{.adam_beta_2 = -0.1F},
        MuonOptions{.adam_weight_decay = -1}, MuonOptions{.epsilon = 0}, MuonOptions{.weight_decay = -1},
        MuonOptions{.muon_a = std::numeric_limits<float>::infinity()}, MuonOptions{.adam_lr_ratio = -1},
        MuonOptions{.momentum = 1}, MuonOptions{.ns_steps = -1}, MuonOptions{.rms_rate = 0.0F},
        MuonOptions{.clip_norm = 0.0F}}) {
    EXPECT_THROW(Muon{options}, Error);
  }
}

}  // namespace
}  // namespace holdfast
