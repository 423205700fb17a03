// What reference cases of options that compute step by step do not show: which elements of a state are dropped.

#include "nn/layers/recurrent/recurrent_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "holdfast/nn/flatten.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/model.h"
#include "holdfast/nn/recurrent_layers.h"
#include "holdfast/nn/sequential.h"
#include "holdfast/nn/shape_layers.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/random_model.h"
#include "unit/nn/support/reference_check.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kStateUnits = 16;
constexpr std::int64_t kStateSteps = 3;

// Each gate adds element u of the input to element u of the state.
std::vector<float> units_of_gates(const Model& model) {
  std::vector<float> parameters(model.parameters().float_count());
  for (const auto& entry : model.parameters().entries()) {
    const auto columns = static_cast<std::size_t>(entry.shape[1]);
    for (std::size_t row = 0; row < kStateUnits; ++row) {
      for (std::size_t column = row; column < columns; column += kStateUnits) {
        parameters[entry.offset + row * columns + column] = 1;
      }
    }
  }
  return parameters;
}

// The outputs of a training step, [samples, kStateSteps, kStateUnits], where the first step of a sequence is 1 and all
// others are 0.
std::vector<float> outputs_of_training(const Model& model, std::int64_t samples, std::int64_t first) {
  ModelProgram program(model, 1);
  std::vector<float> x(static_cast<std::size_t>(samples * kStateSteps * kStateUnits));
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    std::fill_n(x.begin() + sample * kStateSteps * kStateUnits, kStateUnits, 1.0F);
  }
  const auto outputs =
      program.forward_training(x, samples, units_of_gates(model), {.seed = 7, .step = 3, .first_sample = first});
  return {outputs.begin(), outputs.end()};
}

template <class Layer>
Model layer_with_dropped_states() {
  const Value x = input({kStateSteps, kStateUnits});
  return {x, Layer{kStateUnits,
                   {.activation = Activation::linear,
                    .recurrent_activation = Activation::linear,
                    .use_bias = false,
                    .return_sequences = true,
                    .recurrent_dropout = 0.5F}}(x)};
}

TEST(RecurrentSteps, DropTheSameElementsOfAStateInEachStep) {
  constexpr std::int64_t kSamples = 200;
  const std::vector<float> found = outputs_of_training(layer_with_dropped_states<SimpleRNN>(), kSamples, 0);

  double kept = 0;
  for (std::int64_t sample = 0; sample < kSamples; ++sample) {
    for (std::int64_t unit = 0; unit < kStateUnits; ++unit) {
      const auto at = [&](std::int64_t step) {
        return found[static_cast<std::size_t>((sample * kStateSteps + step) * kStateUnits + unit)];
      };
      EXPECT_EQ(at(0), 1.0F);
      EXPECT_TRUE(at(1) == 0 || at(1) == 2.0F) << at(1);
      EXPECT_EQ(at(2), at(1) * at(1));
      kept += at(1) == 2.0F ? 1 : 0;
    }
  }
  // Five times the standard deviation of the share among 3200 draws.
  EXPECT_NEAR(kept / (kSamples * kStateUnits), 0.5, 0.045);
}

// In the second step, the state is m_o (m_f + m_i m_c) of the masks: above 0 for 5 / 16 of the elements, and for half
// of them if the four were one mask.
TEST(RecurrentSteps, DropOtherElementsForEachGate) {
  constexpr std::int64_t kSamples = 200;
  const std::vector<float> found = outputs_of_training(layer_with_dropped_states<LSTM>(), kSamples, 0);

  double kept = 0;
  for (std::int64_t sample = 0; sample < kSamples; ++sample) {
    for (std::int64_t unit = 0; unit < kStateUnits; ++unit) {
      kept += found[static_cast<std::size_t>((sample * kStateSteps + 1) * kStateUnits + unit)] > 0 ? 1 : 0;
    }
  }
  EXPECT_NEAR(kept / (kSamples * kStateUnits), 0.3125, 0.042);
}

TEST(RecurrentSteps, DropTheSameElementsOnAnyCutOfABatch) {
  const Model model = layer_with_dropped_states<LSTM>();
  const std::vector<float> whole = outputs_of_training(model, 6, 20);

  std::vector<float> joined = outputs_of_training(model, 2, 20);
  const std::vector<float> rest = outputs_of_training(model, 4, 22);

  joined.insert(joined.end(), rest.begin(), rest.end());
  EXPECT_EQ(joined, whole);
  EXPECT_NE(outputs_of_training(model, 2, 22), outputs_of_training(model, 2, 20));
}

TEST(RecurrentSteps, DropOtherElementsInTheOtherDirection) {
  const Value x = input({kStateSteps, kStateUnits});
  const Bidirectional layer{SimpleRNN{
      kStateUnits,
      {.activation = Activation::linear, .use_bias = false, .return_sequences = true, .recurrent_dropout = 0.5F}}};
  // The same numbers in both directions: the only step that is not 0 stands in the middle.
  const Model model(x, layer(x));
  ModelProgram program(model, 1);
  std::vector<float> numbers(kStateSteps * kStateUnits);
  std::fill_n(numbers.begin() + kStateUnits, kStateUnits, 1.0F);

  const auto found =
      program.forward_training(numbers, 1, units_of_gates(model), {.seed = 7, .step = 3, .first_sample = 0});

  const std::vector<float> forwards(found.begin() + 4 * kStateUnits, found.begin() + 5 * kStateUnits);
  const std::vector<float> backwards(found.begin() + kStateUnits, found.begin() + 2 * kStateUnits);
  EXPECT_EQ(std::count(forwards.begin(), forwards.end(), 0.0F) + std::count(forwards.begin(), forwards.end(), 2.0F),
            kStateUnits);
  EXPECT_EQ(std::count(backwards.begin(), backwards.end(), 0.0F) + std::count(backwards.begin(), backwards.end(), 2.0F),
            kStateUnits);
  EXPECT_NE(forwards, backwards);
}

TEST(RecurrentSteps, ComputeInInferenceAsWithoutDropout) {
  const Value x = input({5, 3});
  Model dropping(x, LSTM{4, {.return_sequences = true, .dropout = 0.5F, .recurrent_dropout = 0.5F}}(x));
  Model plain(x, LSTM{4, {.return_sequences = true}}(x));
  std::vector<float> parameters(plain.parameters().float_count());
  plain.initialize(3, parameters, {});
  plain.set_weights(parameters, {});
  dropping.set_weights(parameters, {});
  const Tensor numbers(Shape{2, 5, 3}, reference::random_values(30, 1));

  const Tensor found = dropping.predict(numbers), expected = plain.predict(numbers);

  EXPECT_TRUE(std::ranges::equal(found.values(), expected.values()));
}

TEST(RecurrentSteps, GiveTheSameBitsInMemoryThatOperationsShare) {
  const Sequential model{Input{6},
                         Reshape{{2, 3}},
                         LSTM{3, {.return_sequences = true, .dropout = 0.25F, .recurrent_dropout = 0.25F}},
                         Bidirectional{GRU{3, {.reset_after = false, .return_sequences = true}}},
                         SimpleRNN{3, {.return_sequences = true, .go_backwards = true, .recurrent_dropout = 0.5F}},
                         Flatten{}};

  const random_models::Result expected = random_models::train(model, 3);

  EXPECT_TRUE(expected == random_models::train(model, 3, random_models::kApart));
  EXPECT_TRUE(expected == random_models::train(model, 3, {.tile_bytes = 64}));
}

TEST(RecurrentSteps, StandInFilesWhereAModelUsesThem) {
  const Value x = input({3, 4});
  const Model rare(x, GRU{3, {.reset_after = false, .recurrent_dropout = 0.25F}}(x));
  const Model plain(x, GRU{3}(x));

  EXPECT_EQ(Model::from_graph(rare.graph()).graph(), rare.graph());
  EXPECT_THAT(rare.graph(), HasSubstr("\"reset_after\":false"));
  EXPECT_THAT(rare.graph(), HasSubstr("\"recurrent_dropout\":0.25"));
  EXPECT_EQ(rare.parameters().entries()[2].shape, Shape{9});
  for (const char* option : {"reset_after", "recurrent_dropout"}) {
    EXPECT_EQ(plain.graph().find(option), std::string::npos) << option;
  }
}

TEST(RecurrentSteps, RefuseARateOfOne) {
  EXPECT_THAT(refusal([] { LSTM(2, {.recurrent_dropout = 1}); }), HasSubstr("a rate from 0 to below 1"));
}

}  // namespace
}  // namespace holdfast
