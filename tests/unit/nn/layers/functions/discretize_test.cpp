#include "holdfast/nn/discretize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "holdfast/holdfast.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

const std::vector<float> kBoundaries{-1.5F, 0, 2, 2.5F};
// What keras.layers.Discretization(bin_boundaries) of Keras 3.15 makes of these.
const std::vector<float> kNumbers{-2, -1.5F, -0.1F, 0, 2, 2.4F, 2.5F, std::nanf("")};
const std::vector<std::int64_t> kBins{0, 1, 1, 2, 3, 3, 4, 4};

TEST(Discretize, HasAOneAtThePlaceOfTheBinOfKeras) {
  const Value x = input({4});
  Model model(x, discretize(x, kBoundaries));
  model.set_weights({}, {});
  const Tensor rows = model.predict(Tensor(Shape{2, 4}, kNumbers));

  ASSERT_EQ(rows.shape(), (Shape{2, 4, 5}));
  for (std::size_t i = 0; i < kBins.size(); ++i) {
    for (std::size_t bin = 0; bin < 5; ++bin) {
      EXPECT_EQ(rows.values()[i * 5 + bin], static_cast<std::size_t>(kBins[i]) == bin ? 1 : 0) << i;
    }
  }
  EXPECT_EQ(discretize(input({1}), kBoundaries).shape(), Shape{5});
  EXPECT_EQ(discretize(input({3, 1}), {1}).shape(), (Shape{3, 2}));
}

// A file of the graph keeps the boundaries.
TEST(Discretize, IsPartOfTheModel) {
  const Value x = input({1});
  Model model(x, Dense{2, {.use_bias = false}}(discretize(x, {18, 65})));
  const std::vector<float> table{1, 2, 3, 4, 5, 6};
  std::vector<float> weights = table;
  weights.resize(model.parameters().float_count());
  model.set_weights(weights, {});
  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());

  const Tensor rows = model.predict(Tensor(Shape{3, 1}, {17.9F, 18, 70}));

  EXPECT_EQ(std::vector<float>(rows.values().begin(), rows.values().end()), table);
}

TEST(Discretize, RefusesWhatCanNeverWork) {
  const Value x = input({1});
  EXPECT_THAT(sentence_thrown_by([&] { discretize(x, {}); }), HasSubstr("1 to 256 boundaries, not 0"));
  EXPECT_THAT(sentence_thrown_by([&] { discretize(x, {2, 2}); }), HasSubstr("number 1 is 2"));
  EXPECT_THAT(sentence_thrown_by([&] { discretize(x, {std::numeric_limits<float>::infinity()}); }),
              HasSubstr("finite"));
  EXPECT_THAT(sentence_thrown_by([] { discretize(input({1}, {.dtype = DType::i32}), {2}); }),
              HasSubstr("it takes f32, and the value is i32"));
}

}  // namespace
}  // namespace holdfast
