// Shapes of EinsumDense, and the equations that it refuses. Its numbers are compared with Keras's in
// reference_cases_test.cpp.

#include "holdfast/nn/einsum_dense.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/nn/sequential.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

Shape shape_of(const Model& model, const std::string& array) {
  for (const ArenaEntry& entry : model.parameters().entries()) {
    if (entry.name == array) return entry.shape;
  }
  return {};
}

TEST(EinsumDense, HasAKernelWithTheAxesOfItsEquation) {
  const Sequential model{Input{5, 6}, EinsumDense{"abc,dce->abde", {-1, 2, 3}, {.bias_axes = "d", .name = "heads"}}};

  EXPECT_EQ(model.output_shape(), (Shape{5, 2, 3}));
  EXPECT_EQ(shape_of(model, "heads/kernel"), (Shape{2, 6, 3}));
  // Broadcast over the axis after it.
  EXPECT_EQ(shape_of(model, "heads/bias"), (Shape{2, 1}));
  EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
}

TEST(EinsumDense, TakesAnyAxesBeforeThoseOfItsEquation) {
  const EinsumDense layer{"...x,xy->...y", {4}};

  EXPECT_EQ((Sequential{Input{3}, layer}.output_shape()), (Shape{4}));
  EXPECT_EQ((Sequential{Input{7, 5, 3}, layer}.output_shape()), (Shape{7, 5, 4}));
}

TEST(EinsumDense, MovesAxesOfTheInput) {
  EXPECT_EQ((Sequential{Input{5, 6}, EinsumDense{"abc,bd->adc", {2, -1}}}.output_shape()), (Shape{2, 6}));
}

TEST(EinsumDense, RefusesEquationsThatAreNotOneProductOfMatrices) {
  for (const auto& [equation, why] : {std::pair{"ab", "write it as"},
                                      {"abc,bcd->abd", "the axis b of the kernel is neither summed over nor new"},
                                      {"ab,ab->a", "is that of the samples"},
                                      {"ab,bc->ca", "is that of the samples"},
                                      {"abc,cd->ad", "the axis b stands in one term alone"},
                                      {"abb,bc->ac", "the axis b stands twice"},
                                      {"...x,xy->y", "must stand first in both"},
                                      {"ab...,bc->ac...", "axes are letters"}}) {
    EXPECT_THAT(refusal([&, equation = equation] { EinsumDense(equation, {2}); }), HasSubstr(why)) << equation;
  }
}

TEST(EinsumDense, RefusesExtentsAndInputsThatDoNotFit) {
  EXPECT_THAT(refusal([] { EinsumDense("abc,cd->abd", {2}); }), HasSubstr("and 1 extents were given"));
  EXPECT_THAT(refusal([] { EinsumDense("ab,bc->ac", {2}, {.bias_axes = "b"}); }),
              HasSubstr("has no axis b for the bias"));
  EXPECT_NE(refusal([] { EinsumDense("ab,bc->ac", {-1}); }), "") << "a new axis has no extent in the input";
  EXPECT_THAT(refusal([] {
                Sequential{Input{3}, EinsumDense{"abc,cd->abd", {-1, 2}}};
              }),
              HasSubstr("does not fit an input of shape [3]"));
  EXPECT_THAT(refusal([] {
                Sequential{Input{4, 3}, EinsumDense{"abc,cd->abd", {5, 2}}};
              }),
              HasSubstr("has 5 elements along b, and the input has 4"));
  // Their product overflowed, which the sanitizer build shows.
  constexpr std::int64_t kMost = Layer::kMaximumExtent;
  EXPECT_THAT(refusal([] {
                Sequential{Input{3}, EinsumDense{"ab,bcde->acde", {kMost, kMost, kMost}}};
              }),
              HasSubstr("more elements than 63 bits can count"));
}

}  // namespace
}  // namespace holdfast
