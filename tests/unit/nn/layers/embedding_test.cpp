// ReversibleEmbedding; what it computes is compared with Keras in reference_cases_test.cpp. Embedding itself:
// operations/gather_test.cpp.

#include "holdfast/nn/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/holdfast.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Model language_model(const ReversibleEmbeddingOptions& options = {}) {
  const Value ids = input({2}, {.dtype = DType::i32, .name = "ids"});
  const ReversibleEmbedding words{3, 2, options};
  return Model(ids, words.reverse(words(ids)));
}

TEST(ReversibleEmbedding, HasOneTableForBothDirections) {
  Model model = language_model();
  std::vector<float> table(model.parameters().float_count());
  std::ranges::copy(std::vector<float>{1, 2, 3, 4, 5, 6}, table.begin());

  ASSERT_EQ(model.parameters().entries().size(), 1U);
  EXPECT_EQ(model.parameters().entries()[0].name, "reversible_embedding/embeddings");
  model.set_weights(table, {});
  // Rows 0 and 2, times all rows.
  EXPECT_THAT(model.predict(Tensor(Shape{1, 2}, std::vector<std::int32_t>{0, 2})).values(),
              ElementsAre(5, 11, 17, 17, 39, 61));
}

// With e = T[id] and the gradient g of e T^T: dT = g^T e, and in row `id` g T besides.
TEST(ReversibleEmbedding, AddsTheGradientsOfBothDirections) {
  const Value ids = input({1}, {.dtype = DType::i32});
  const ReversibleEmbedding words{3, 1};
  const Model model(ids, words.reverse(words(ids)));
  ModelProgram program(model, 1);
  std::vector<float> table(model.parameters().float_count());
  std::ranges::copy(std::vector<float>{2, 3, 5}, table.begin());
  std::vector<float> gradients(table.size(), 77);
  const std::vector<std::int32_t> id = {1};

  program.prepare_training(1, {});
  program.run_training({reinterpret_cast<const std::byte*>(id.data())}, 1, table);
  program.backward(std::vector<float>{7, 11, 13}, table, gradients, {});

  EXPECT_THAT(std::span(gradients).first(3), ElementsAre(7 * 3, 11 * 3 + (7 * 2 + 11 * 3 + 13 * 5), 13 * 3));
}

TEST(ReversibleEmbedding, HasAMatrixOfItsOwnWithoutTies) {
  const Model model = language_model({.tie_weights = false, .name = "words"});

  ASSERT_EQ(model.parameters().entries().size(), 2U);
  EXPECT_EQ(model.parameters().entries()[1].name, "words/reverse_embeddings");
  EXPECT_EQ(model.parameters().entries()[1].shape, (Shape{2, 3}));
  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
}

TEST(ReversibleEmbedding, RefusesWhatFitsNeitherDirection) {
  const ReversibleEmbedding words{3, 2};
  const Value ids = input({2}, {.dtype = DType::i32});

  EXPECT_THAT(refusal([&] { words(input({2})); }), HasSubstr("needs ids that are integers"));
  EXPECT_THAT(refusal([&] { words.reverse(ids); }), HasSubstr("needs vectors of f32"));
  EXPECT_THAT(refusal([&] { words.reverse(input({4})); }), HasSubstr("vectors [..., 2] of f32"));
  EXPECT_THAT(refusal([] { ReversibleEmbedding(3, 2, {.logit_soft_cap = 0.0F}); }),
              HasSubstr("logit_soft_cap above 0"));
}

}  // namespace
}  // namespace holdfast
