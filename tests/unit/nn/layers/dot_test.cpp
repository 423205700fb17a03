#include "holdfast/nn/dot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "holdfast/nn/model.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Floats = std::vector<float>;

Floats dotted(const Dot& dot, const Shape& a_shape, const Floats& a, const Shape& b_shape, const Floats& b) {
  const Value x = input(a_shape), y = input(b_shape);
  const Model model({x, y}, {dot(x, y)});
  ModelProgram program(model, 1);
  const auto outputs = program.run_inference(
      {reinterpret_cast<const std::byte*>(a.data()), reinterpret_cast<const std::byte*>(b.data())}, 1, {}, {});
  const auto* const first = reinterpret_cast<const float*>(outputs[0]);
  return {first, first + model.output_shape().element_count()};
}

TEST(Dot, AddsProductsAlongAnAxisOfEachInput) {
  EXPECT_THAT(dotted(Dot{0}, {3}, {1, 2, 3}, {3}, {4, 5, 6}), ElementsAre(32));
  // [2, 3] times [3, 2].
  EXPECT_THAT(dotted(Dot{{1, 0}}, {2, 3}, {1, 2, 3, 4, 5, 6}, {3, 2}, {1, 0, 0, 1, 1, 1}), ElementsAre(4, 5, 10, 11));
  EXPECT_THAT(dotted(Dot{{-2, -1}}, {2, 1}, {1, 2}, {2}, {3, 4}), ElementsAre(11));
}

TEST(Dot, IsTheCosineOfNormalizedVectors) {
  const Floats cosine = dotted(Dot{-1, {.normalize = true}}, {2}, {3, 4}, {2}, {5, 0});

  // Three roundings of factors of at most 1 before the sum, and one after it.
  EXPECT_NEAR(cosine.at(0), 0.6, 8 * 0x1p-24);
  EXPECT_THAT(dotted(Dot{-1, {.normalize = true}}, {2}, {0, 0}, {2}, {5, 0}), ElementsAre(0));
}

TEST(Dot, KeepsTheRemainingAxesOfTheFirstInputFirst) {
  const Value x = input({2, 5, 3}), y = input({4, 5});

  EXPECT_EQ((Dot{{1, 1}}(x, y).shape()), (Shape{2, 3, 4}));
  EXPECT_EQ((Dot{{1, 1}}(y, x).shape()), (Shape{4, 2, 3}));
}

TEST(Dot, IsWrittenToTheGraphAndReadFromIt) {
  const Value x = input({2, 3}), y = input({3, 2});
  const Model model({x, y}, {Dot{{1, 0}, {.normalize = true}}(x, y)});

  EXPECT_EQ(Model::from_graph(model.graph()).graph(), model.graph());
}

TEST(Dot, RefusesInputsThatDoNotFitItsAxes) {
  const Value x = input({3}), y = input({4});

  EXPECT_THAT(refusal([] { Dot{{0, 99}}; }), HasSubstr("Dot needs axes of its inputs, from -16 to 15, not 99"));
  EXPECT_THAT(refusal([&] { Dot{0}(x, y); }),
              HasSubstr("axis 0 of the first input has 3 and axis 0 of the second has 4"));
  EXPECT_THAT(refusal([&] { Dot{1}(x, x); }), HasSubstr("Dot was given axis 1 of a value of shape [3]"));
  EXPECT_THAT(refusal([&] { Dot{0}(x); }), HasSubstr("it takes two inputs, not 1"));
}

}  // namespace
}  // namespace holdfast
