// What reference cases do not show: causality by bits, masks as inputs, dropout on any cut of a batch, second outputs.

#include "holdfast/nn/multi_head_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "holdfast/nn/dense.h"
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

std::vector<float> initial_parameters(const Model& model) {
  std::vector<float> parameters(model.parameters().float_count()), buffers(model.buffers().float_count());
  model.initialize(3, parameters, buffers);
  return parameters;
}

std::vector<float> outputs_of(const Model& model, const std::vector<float>& x, std::int64_t samples,
                              const RandomKey& draws = {}) {
  ModelProgram program(model, 1);
  const auto outputs = program.forward_training(x, samples, initial_parameters(model), draws);
  return {outputs.begin(), outputs.end()};
}

TEST(MultiHeadAttention, DoesNotLookAheadWhereItIsCausal) {
  const Value x = input({5, 4});
  const Model model(x, MultiHeadAttention{2, 3, {.use_causal_mask = true}}(x));
  std::vector<float> numbers = reference::random_values(20, 1);
  const std::vector<float> before = outputs_of(model, numbers, 1);

  // Steps 3 and 4.
  for (std::size_t i = 12; i < 20; ++i) numbers[i] += 1;
  const std::vector<float> after = outputs_of(model, numbers, 1);

  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 12, after.begin()));
  EXPECT_NE(before[12], after[12]);
}

TEST(MultiHeadAttention, GivesTheSharesAsASecondOutput) {
  const Value x = input({3, 4});
  const Value padding = input({3}, {.dtype = DType::boolean});
  const MultiHeadAttention attention{2, 2, {.takes_padding_mask = true, .return_attention_scores = true}};
  const std::vector<Value> outputs = attention.call(std::vector<Value>{x, padding});
  Model model({x, padding}, outputs);
  model.set_weights(initial_parameters(model), {});

  const Tensor shares = model.predict(
      std::vector<Tensor>{Tensor(Shape{2, 3, 4}, reference::random_values(24, 2)),
                          Tensor(Shape{2, 3}, std::vector<bool>{true, false, true, false, false, false})})[1];

  EXPECT_EQ(shares.shape(), (Shape{2, 2, 3, 3}));
  for (std::size_t row = 0; row < 12; ++row) {
    const std::span<const float> of_row = shares.values().subspan(3 * row, 3);
    EXPECT_EQ(of_row[1], 0) << row;
    // Three roundings of numbers below 1, and no key at all in the second sample.
    EXPECT_NEAR(of_row[0] + of_row[2], row < 6 ? 1 : 0, 3 * 0x1p-24) << row;
  }
}

TEST(MultiHeadAttention, DropsTheSameSharesOnAnyCutOfABatch) {
  const Value x = input({3, 4});
  const Model model(x, MultiHeadAttention{2, 2, {.dropout = 0.5F}}(x));
  const std::vector<float> numbers = reference::random_values(60, 1);
  const std::vector<float> whole = outputs_of(model, numbers, 5, {.seed = 7, .step = 3, .first_sample = 20});

  std::vector<float> joined;
  for (std::int64_t sample = 0; sample < 5; ++sample) {
    const auto begin = numbers.begin() + 12 * sample;
    const std::vector<float> one = outputs_of(model, std::vector<float>(begin, begin + 12), 1,
                                              {.seed = 7, .step = 3, .first_sample = 20 + sample});
    joined.insert(joined.end(), one.begin(), one.end());
  }

  // Masks are bits; products of other shapes may round otherwise.
  ASSERT_EQ(joined.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(joined[i], whole[i], 1e-5) << i;
  EXPECT_NE(whole, outputs_of(model, numbers, 5, {.seed = 7, .step = 4, .first_sample = 20}));
}

TEST(MultiHeadAttention, GivesTheSameBitsInMemoryThatOperationsShare) {
  const Sequential model{Input{6}, Reshape{{2, 3}}, MultiHeadAttention{2, 2, {.dropout = 0.25F}},
                         GroupQueryAttention{2, 4, 2, {.use_causal_mask = true}}, Flatten{}};

  const random_models::Result expected = random_models::train(model, 3);

  EXPECT_TRUE(expected == random_models::train(model, 3, random_models::kApart));
  EXPECT_TRUE(expected == random_models::train(model, 3, {.tile_bytes = 64}));
}

// The same formula put together from layers that are tested by themselves.
TEST(GroupQueryAttention, TurnsQueriesAndKeysByTheirSteps) {
  const RotaryEmbeddingOptions rotary = {.max_wavelength = 50, .scaling_factor = 2};
  const Value x = input({5, 6});
  Model model(x, GroupQueryAttention{4, 2, 1, {.use_bias = false, .rotary = rotary}}(x));
  const auto heads = [&](const char* name, std::int64_t count) {
    return reshape(Dense{4 * count, {.use_bias = false, .name = name}}(x), {5, count, 4});
  };
  const Value q = RotaryEmbedding{rotary}(heads("query_dense", 2));
  const Value k = reshape(RotaryEmbedding{rotary}(heads("key_dense", 1)), {5, 4});
  const Value v = reshape(heads("value_dense", 1), {5, 4});
  const Value shares = softmax(einsum("qhd,kd->hqk", q, k) * 0.5F);
  const Value mean = reshape(einsum("hqk,kd->qhd", shares, v), {5, 8});
  Model parts(x, Dense{6, {.use_bias = false, .name = "output_dense"}}(mean));
  std::vector<float> buffers(model.buffers().float_count()), of_parts(parts.buffers().float_count());
  std::vector<float> parameters(model.parameters().float_count()), same(parts.parameters().float_count());
  model.initialize(3, parameters, buffers);
  parts.initialize(3, same, of_parts);
  // Layers of the two models may have another order.
  for (std::size_t to = 0; to < 4; ++to) {
    for (std::size_t from = 0; from < 4; ++from) {
      if (!model.parameters().entries()[from].name.ends_with("/" + parts.parameters().entries()[to].name)) continue;
      const std::span<const float> numbers = model.parameters().view(std::span<const float>(parameters), from);
      std::ranges::copy(numbers, parts.parameters().view(std::span<float>(same), to).begin());
    }
  }
  const std::vector<float> numbers = reference::random_values(2 * 5 * 6, 4);
  model.set_weights(parameters, buffers);
  parts.set_weights(same, of_parts);

  const Tensor found = model.predict(Tensor(Shape{2, 5, 6}, numbers));
  const Tensor expected = parts.predict(Tensor(Shape{2, 5, 6}, numbers));

  // Some dozens of roundings of numbers of the size of 1.
  for (std::size_t i = 0; i < found.values().size(); ++i) EXPECT_NEAR(found.values()[i], expected.values()[i], 1e-5);
}

// Keys of another sequence have more steps than queries, and their own positions.
TEST(MultiHeadAttention, TurnsASequenceThatIsShorterThanItsKeys) {
  const Value x = input({2, 4}), memory = input({5, 4});
  const MultiHeadAttention attention{2, 4, {.rotary = RotaryEmbeddingOptions{}}};
  const Model model({x, memory}, {attention(x, memory)});

  EXPECT_EQ(model.buffers().entries()[0].name, "multi_head_attention/rotary/cosine");
  EXPECT_EQ(model.buffers().entries()[0].shape, (Shape{5, 2}));
  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
  EXPECT_THAT(refusal([&] {
                MultiHeadAttention{2, 3, {.rotary = RotaryEmbeddingOptions{}}}(x);
              }),
              HasSubstr("a width of 3 must be even"));
  EXPECT_THAT(refusal([] { MultiHeadAttention(2, 4, {.rotary = {{.max_wavelength = 0}}}); }),
              HasSubstr("a finite max_wavelength of at least 1"));
}

TEST(MultiHeadAttention, GoesThroughAFile) {
  const Value x = input({3, 4}), memory = input({5, 2}), mask = input({3, 5}, {.dtype = DType::boolean});
  const MultiHeadAttention attention{
      2, 3, {.value_dim = 5, .dropout = 0.5F, .use_bias = false, .sliding_window = 2, .takes_attention_mask = true}};
  const Model model({x, memory, mask}, {attention(x, memory, mask), GroupQueryAttention{2, 4, 2}(x)});

  const Model read = Model::from_graph(model.graph());

  EXPECT_EQ(read.graph(), model.graph());
  EXPECT_EQ(read.parameters().float_count(), model.parameters().float_count());
}

// Draws and savepoints follow the order of the parameters.
TEST(MultiHeadAttention, HasItsParametersInTheOrderOfItsFormula) {
  const Value x = input({3, 4});
  for (const Model& model :
       {Model(x, MultiHeadAttention{2, 4, {.use_bias = false, .name = "a"}}(x)),
        Model(x,
              GroupQueryAttention{4, 2, 1, {.use_bias = false, .rotary = RotaryEmbeddingOptions{}, .name = "a"}}(x))}) {
    std::vector<std::string> names;
    for (const ArenaEntry& entry : model.parameters().entries()) names.push_back(entry.name);

    EXPECT_THAT(names, testing::ElementsAre("a/query_dense/kernel", "a/key_dense/kernel", "a/value_dense/kernel",
                                            "a/output_dense/kernel"));
  }
}

// GPT-2 begins with smaller numbers there.
TEST(MultiHeadAttention, BeginsTheLastProjectionWithAnInitializerOfItsOwn) {
  const Value x = input({3, 4});
  const Model usual(x, MultiHeadAttention{2, 3}(x));
  const Model model(x, MultiHeadAttention{2, 3, {.output_initializer = Initializer::constant(7)}}(x));
  ASSERT_EQ(model.parameters().entries()[6].name, "multi_head_attention/output_dense/kernel");

  const std::vector<float> before = initial_parameters(usual), after = initial_parameters(model);

  for (std::size_t entry = 0; entry < 8; ++entry) {
    const std::span<const float> numbers = model.parameters().view(after, entry);
    if (entry == 6) {
      EXPECT_TRUE(std::ranges::all_of(numbers, [](float number) { return number == 7; }));
    } else {
      EXPECT_TRUE(std::ranges::equal(numbers, usual.parameters().view(before, entry))) << entry;
    }
  }
  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
  EXPECT_EQ(usual.graph().find("output_initializer"), std::string::npos);
}

TEST(MultiHeadAttention, SaysWhatItNeeds) {
  const Value x = input({3, 4});

  EXPECT_THAT(refusal([] { MultiHeadAttention(0, 3); }), HasSubstr("a number of heads"));
  EXPECT_THAT(refusal([] { MultiHeadAttention(1, 3, {.dropout = 1}); }), HasSubstr("a rate from 0 to below 1"));
  EXPECT_THAT(refusal([] { GroupQueryAttention(2, 3, 2); }), HasSubstr("a multiple of its 2 heads"));
  EXPECT_THAT(refusal([] { GroupQueryAttention(2, 4, 2, {.value_dim = 3}); }), HasSubstr("must be left out"));
  EXPECT_THAT(refusal([&] { MultiHeadAttention{1, 1}(input({3})); }), HasSubstr("[steps, width], not [3]"));
  EXPECT_THAT(refusal([&] { MultiHeadAttention{1, 1}(x, x, input({2, 4})); }), HasSubstr("as many values as keys"));
  EXPECT_THAT(refusal([&] { MultiHeadAttention{1, 1}(x, x, x, x); }), HasSubstr("not 4 inputs"));
  EXPECT_THAT(refusal([&] { MultiHeadAttention(1, 1, {.takes_padding_mask = true})(x); }), HasSubstr("one mask"));
  EXPECT_THAT(refusal([&] { MultiHeadAttention(1, 1, {.takes_padding_mask = true})(x, input({4})); }),
              HasSubstr("3 queries and 3 keys need [3] or [3, 3]"));
}

}  // namespace
}  // namespace holdfast
