#include "holdfast/nn/position_embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "holdfast/nn/functions.h"
#include "holdfast/nn/model.h"
#include "unit/nn/support/reference_check.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// What rotary positions are for.
TEST(RotaryEmbedding, MakesProductsDependOnTheDistanceAlone) {
  const Value x = input({8, 1, 4});
  const Value rotated = RotaryEmbedding{{.max_wavelength = 10}}(x);
  Model model(x, einsum("qhd,khd->qk", rotated, rotated));
  std::vector<float> buffers(model.buffers().float_count());
  model.initialize(1, {}, buffers);
  model.set_weights({}, buffers);
  // One vector at each step.
  std::vector<float> numbers;
  for (int step = 0; step < 8; ++step) numbers.insert(numbers.end(), {1, 2, -1, 0.5F});

  const Tensor products = model.predict(Tensor(Shape{1, 8, 1, 4}, numbers));

  for (std::size_t i = 0; i + 1 < 8; ++i) {
    for (std::size_t j = 0; j + 1 < 8; ++j) {
      // Eight roundings of numbers below 8.
      EXPECT_NEAR(products.values()[8 * i + j], products.values()[8 * (i + 1) + j + 1], 8 * 8 * 0x1p-24) << i << j;
    }
  }
}

TEST(PositionEmbedding, SaysWhatItNeeds) {
  EXPECT_THAT(refusal([] { PositionEmbedding(0); }), HasSubstr("a sequence length"));
  EXPECT_THAT(refusal([] { PositionEmbedding{3}(input({4, 2})); }), HasSubstr("for 3 steps, and its input has 4"));
  EXPECT_THAT(refusal([] { PositionEmbedding{3}(input({4})); }), HasSubstr("[steps, width], not [4]"));
  EXPECT_THAT(refusal([] { SinePositionEncoding({.max_wavelength = 0}); }),
              HasSubstr("a finite max_wavelength of at least 1"));
  EXPECT_THAT(refusal([] { RotaryEmbedding({.scaling_factor = 0}); }), HasSubstr("a finite scaling_factor above 0"));
  EXPECT_THAT(refusal([] { RotaryEmbedding{}(input({4, 3})); }), HasSubstr("must be even"));
}

TEST(PositionEmbedding, GoesThroughAFile) {
  const Value x = input({4, 2});
  const Model model(x, PositionEmbedding{6}(x) + SinePositionEncoding{}(x) + RotaryEmbedding{}(x));

  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
}

}  // namespace
}  // namespace holdfast
