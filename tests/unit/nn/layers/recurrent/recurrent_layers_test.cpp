// What reference cases do not show: states that are handed on, masks of some samples, dropout on any cut of a batch.

#include "holdfast/nn/recurrent_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/nn/flatten.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/model.h"
#include "holdfast/nn/sequential.h"
#include "holdfast/nn/shape_layers.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/random_model.h"
#include "unit/nn/support/reference_check.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

void draw_weights(Model& model) {
  std::vector<float> parameters(model.parameters().float_count()), buffers(model.buffers().float_count());
  model.initialize(3, parameters, buffers);
  model.set_weights(parameters, buffers);
}

std::vector<float> floats_of(const Tensor& tensor) {
  return {tensor.values().begin(), tensor.values().end()};
}

template <class Layer>
void expect_to_go_on_from_a_state() {
  const Value x = input({6, 3});
  const Layer layer{4, {.return_state = true}};
  const std::vector<Value> whole = layer.call(std::vector<Value>{x});
  std::vector<Value> half = layer.call(std::vector<Value>{slice(x, 0, 0, 2)});
  // The output comes first, and then the states.
  half.front() = slice(x, 0, 2, 6);
  Model model(x, concatenate({whole.front(), layer.call(half).front()}, 0));
  draw_weights(model);

  const std::vector<float> found = floats_of(model.predict(Tensor(Shape{2, 6, 3}, reference::random_values(36, 1))));

  for (std::size_t sample = 0; sample < 2; ++sample) {
    // Both ways compute the same products of the same shapes, but for those of all steps at once.
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[8 * sample + i], found[8 * sample + 4 + i], 1e-6) << i;
  }
}

TEST(RecurrentLayers, GoOnFromAStateThatTheyReturned) {
  expect_to_go_on_from_a_state<SimpleRNN>();
  expect_to_go_on_from_a_state<LSTM>();
  expect_to_go_on_from_a_state<GRU>();
}

template <class Layer>
void expect_to_skip_masked_steps() {
  const Value x = input({4, 3}), mask = input({4}, {.dtype = DType::boolean});
  const Layer masked{2, {.return_sequences = true, .takes_mask = true, .name = "rnn"}};
  Model model({x, mask}, {masked(x, mask)});
  draw_weights(model);
  const std::vector<float> numbers = reference::random_values(12, 1);
  const auto outputs = [&](const std::vector<float>& values, const std::vector<bool>& kept) {
    return floats_of(model.predict(std::vector<Tensor>{Tensor(Shape{1, 4, 3}, values), Tensor(Shape{1, 4}, kept)})[0]);
  };
  // The steps 1 and 3 are those that stay.
  std::vector<float> shorter = numbers;
  std::copy_n(numbers.begin() + 3, 3, shorter.begin());
  std::copy_n(numbers.begin() + 9, 3, shorter.begin() + 3);

  const std::vector<float> found = outputs(numbers, {false, true, false, true});
  const std::vector<float> expected = outputs(shorter, {true, true, false, false});

  const auto step = [](const std::vector<float>& values, std::size_t index) {
    return std::vector<float>(values.begin() + 2 * static_cast<std::ptrdiff_t>(index),
                              values.begin() + 2 * static_cast<std::ptrdiff_t>(index) + 2);
  };
  EXPECT_EQ(step(found, 0), (std::vector<float>{0, 0}));
  EXPECT_EQ(step(found, 1), step(expected, 0));
  EXPECT_EQ(step(found, 2), step(expected, 0));
  EXPECT_EQ(step(found, 3), step(expected, 1));
  EXPECT_EQ(step(expected, 3), step(expected, 1));
}

TEST(RecurrentLayers, SkipMaskedSteps) {
  expect_to_skip_masked_steps<SimpleRNN>();
  expect_to_skip_masked_steps<LSTM>();
  expect_to_skip_masked_steps<GRU>();
}

TEST(RecurrentLayers, BeginWithAForgetBiasOfOne) {
  const Value x = input({2, 3});
  const Model model(x, LSTM{2}(x));
  std::vector<float> parameters(model.parameters().float_count());

  model.initialize(3, parameters, {});

  const std::span<const float> bias = model.parameters().view(std::span<const float>(parameters), 2);
  EXPECT_THAT(bias, testing::ElementsAre(0, 0, 1, 1, 0, 0, 0, 0));
}

TEST(RecurrentLayers, DropTheSameInputsInEachStepAndOnAnyCutOfABatch) {
  const Value x = input({3, 8});
  // A linear layer whose weights are all 1 adds up what is kept of each step.
  const Model model(x, SimpleRNN{1, {.activation = Activation::linear, .return_sequences = true, .dropout = 0.5F}}(x));
  std::vector<float> parameters(model.parameters().float_count(), 1.0F);
  parameters[model.parameters().entries()[1].offset] = 0;
  parameters[model.parameters().entries()[2].offset] = 0;
  const auto outputs_of = [&](std::int64_t samples, std::int64_t first) {
    ModelProgram program(model, 1);
    const std::vector<float> ones(static_cast<std::size_t>(samples * 24), 1.0F);
    const auto outputs =
        program.forward_training(ones, samples, parameters, {.seed = 7, .step = 3, .first_sample = first});
    return std::vector<float>(outputs.begin(), outputs.end());
  };

  const std::vector<float> whole = outputs_of(6, 20);

  std::vector<float> joined = outputs_of(2, 20);
  const std::vector<float> rest = outputs_of(4, 22);
  joined.insert(joined.end(), rest.begin(), rest.end());
  EXPECT_EQ(joined, whole);
  for (std::size_t sample = 0; sample < 6; ++sample) {
    EXPECT_EQ(whole[3 * sample], whole[3 * sample + 1]);
    EXPECT_EQ(whole[3 * sample], whole[3 * sample + 2]);
  }
}

TEST(RecurrentLayers, GiveTheSameBitsInMemoryThatOperationsShare) {
  const Sequential model{Input{6},
                         Reshape{{2, 3}},
                         LSTM{3, {.return_sequences = true, .dropout = 0.25F}},
                         Bidirectional{GRU{3, {.return_sequences = true}}, {.merge_mode = MergeMode::sum}},
                         SimpleRNN{3, {.return_sequences = true, .go_backwards = true}},
                         Flatten{}};

  const random_models::Result expected = random_models::train(model, 3);

  EXPECT_TRUE(expected == random_models::train(model, 3, random_models::kApart));
  EXPECT_TRUE(expected == random_models::train(model, 3, {.tile_bytes = 64}));
}

TEST(RecurrentLayers, GoThroughAFile) {
  const Value x = input({3, 4}), mask = input({3}, {.dtype = DType::boolean});
  const Model model({x, mask}, {LSTM{2, {.unit_forget_bias = false, .takes_mask = true}}(x, mask),
                                GRU{3, {.activation = Activation::relu, .go_backwards = true, .dropout = 0.5F}}(x),
                                SimpleRNN{2, {.use_bias = false, .return_sequences = true}}(x)});

  const Model read = Model::from_graph(model.graph());

  EXPECT_EQ(read.graph(), model.graph());
}

TEST(RecurrentLayers, SayWhatTheyNeed) {
  const Value x = input({3, 4});

  EXPECT_THAT(refusal([] { LSTM(0); }), HasSubstr("LSTM needs a number of units"));
  EXPECT_THAT(refusal([] { GRU(2, {.activation = Activation::gelu}); }),
              HasSubstr("linear, relu, tanh or sigmoid, not gelu"));
  EXPECT_THAT(refusal([] { LSTM(2, {.bias_initializer = Initializer::ones()}); }),
              HasSubstr(".unit_forget_bias = false"));
  EXPECT_THAT(refusal([] { SimpleRNN(2, {.dropout = 1}); }), HasSubstr("a rate from 0 to below 1"));
  EXPECT_THAT(refusal([] { LSTM{2}(input({3})); }), HasSubstr("[steps, width], not [3]"));
  EXPECT_THAT(refusal([&] { LSTM{2}(x, input({2})); }), HasSubstr("2 arrays of initial states or none"));
  EXPECT_THAT(refusal([&] { GRU{2}(x, input({3})); }), HasSubstr("have the shape [2], not [3]"));
  EXPECT_THAT(refusal([&] {
                GRU(2, {.takes_mask = true})
                (x, input({4}));
              }),
              HasSubstr("a sequence of 3 steps needs [3]"));
}

}  // namespace
}  // namespace holdfast
