// What is left of a graph without its last product. How it trains: tests/unit/train/step/outputs/output_tiles_test.cpp.

#include "nn/program/last_product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/embedding.h"
#include "holdfast/nn/functions.h"
#include "nn/model/description.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

Model tied_model() {
  const ReversibleEmbedding words{7, 3};
  const Value ids = input({5}, {.dtype = DType::i32});
  return Model(ids, words.reverse(Dense{3}(words(ids))));
}

TEST(LastProduct, LeavesItsOperandsAsOutputs) {
  const Value x = input({5, 4});
  const Model model(x, Dense{7}(tanh(Dense{3}(x))));

  const auto [graph, product] = without_last_product(model.description()->inference);

  EXPECT_EQ(product.rows, 5);
  EXPECT_EQ(product.inputs, 3);
  EXPECT_EQ(product.outputs, 7);
  EXPECT_TRUE(product.has_bias);
  EXPECT_FALSE(product.has_input_gradient || product.has_weight_gradients);
  ASSERT_EQ(graph.outputs.size(), 3U);
  EXPECT_EQ(graph.spec(graph.outputs[0]).shape, Shape({5, 3}));
  EXPECT_EQ(graph.spec(graph.outputs[1]).shape, Shape({3, 7}));
  EXPECT_EQ(graph.spec(graph.outputs[2]).shape, Shape({7}));
  EXPECT_EQ(graph.operations.size() + 1, model.description()->inference.operations.size());
}

TEST(LastProduct, LeavesGradientsOfParametersToTheCaller) {
  const Value x = input({5, 4});
  const Model model(x, Dense{7}(Dense{3}(x)));

  const auto [graph, product] = without_last_product(model.description()->training);

  EXPECT_TRUE(product.has_input_gradient && product.has_weight_gradients);
  EXPECT_EQ(product.kernel_entry, 2U);
  EXPECT_EQ(product.bias_entry, 3U);
  EXPECT_NE(graph.parameter_gradients[0], kNoArray);
  EXPECT_EQ(graph.parameter_gradients[2], kNoArray);
  EXPECT_EQ(graph.operations.size() + 2, model.description()->training.operations.size());
}

// The table gets the sum of both gradients, as in the whole graph.
TEST(LastProduct, LeavesTheGradientOfATiedTableToTheGraph) {
  const Model model = tied_model();

  const auto [graph, product] = without_last_product(model.description()->training);

  EXPECT_FALSE(product.has_bias);
  EXPECT_EQ(product.kernel_entry, LastProduct::kNoEntry);
  for (const ArrayId gradient : graph.parameter_gradients) EXPECT_NE(gradient, kNoArray);
  EXPECT_EQ(graph.outputs.size(), 2U);
}

TEST(LastProduct, IsReadByNothingElse) {
  const Value x = input({5, 4});
  const Value scores = Dense{4}(x);

  EXPECT_THAT(sentence_thrown_by([&] { without_last_product(Model(x, scores + 1.0F).description()->training); }),
              testing::HasSubstr("this one ends with the operation"));
  EXPECT_THAT(sentence_thrown_by([&] {
                without_last_product(Model({x}, {scores, scores + 1.0F}).description()->training);
              }),
              testing::HasSubstr("this one has 2 outputs"));
}

}  // namespace
}  // namespace holdfast
