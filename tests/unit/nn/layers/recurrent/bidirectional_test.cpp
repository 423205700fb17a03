#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/nn/functions.h"
#include "holdfast/nn/model.h"
#include "holdfast/nn/recurrent_layers.h"
#include "unit/nn/support/reference_check.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// The backward layer of a sequence is the forward one of the reversed sequence, if their weights are equal.
TEST(Bidirectional, PutsBothDirectionsTogetherStepByStep) {
  const Value x = input({4, 3});
  Model model(x, Bidirectional{LSTM{2, {.return_sequences = true}}}(x));
  std::vector<float> parameters(model.parameters().float_count());
  model.initialize(3, parameters, {});
  const std::size_t half = model.parameters().entries()[3].offset;
  std::copy_n(parameters.begin(), model.parameters().entries()[2].offset + 8,
              parameters.begin() + static_cast<std::ptrdiff_t>(half));
  model.set_weights(parameters, {});
  const std::vector<float> numbers = reference::random_values(12, 1);
  std::vector<float> reversed;
  for (std::size_t step = 4; step-- > 0;) {
    for (std::size_t i = 0; i < 3; ++i) reversed.push_back(numbers[3 * step + i]);
  }

  const Tensor there = model.predict(Tensor(Shape{1, 4, 3}, numbers));
  const Tensor back = model.predict(Tensor(Shape{1, 4, 3}, reversed));

  for (std::size_t step = 0; step < 4; ++step) {
    for (std::size_t unit = 0; unit < 2; ++unit) {
      EXPECT_EQ(there.values()[4 * step + unit], back.values()[4 * (3 - step) + 2 + unit]) << step;
    }
  }
}

TEST(Bidirectional, ReturnsAndTakesTheStatesOfBoth) {
  const Value x = input({4, 3});
  const Bidirectional layer{LSTM{2, {.return_state = true}}};
  std::vector<Value> outputs = layer.call(std::vector<Value>{x});
  ASSERT_EQ(outputs.size(), 5U);
  EXPECT_EQ(outputs[0].shape(), Shape{4});
  EXPECT_EQ(outputs[4].shape(), Shape{2});

  outputs[0] = x;

  EXPECT_EQ(layer.call(outputs).size(), 5U);
}

TEST(Bidirectional, GoesThroughAFile) {
  const Value x = input({4, 3});
  const Model model(x, Bidirectional{GRU{2, {.use_bias = false}}, {.merge_mode = MergeMode::ave}}(x));

  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
  EXPECT_EQ(model.parameters().entries()[2].name, "bidirectional/backward_layer/kernel");
}

TEST(Bidirectional, RefusesALayerThatGoesBackwards) {
  EXPECT_THAT(refusal([] { Bidirectional(GRU{2, {.go_backwards = true}}); }), HasSubstr("leave out go_backwards"));
}

}  // namespace
}  // namespace holdfast
