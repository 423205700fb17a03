#include "holdfast/optim/piecewise_constant_decay.h"

#include "unit/optim/support/rates.h"

namespace holdfast {
namespace {

// At the boundary itself the rate is still the one before it, as in Keras.
TEST(PiecewiseConstantDecay, ChangesAfterItsBoundaries) {
  expect_rates(PiecewiseConstantDecay{{10, 20}, {0.5F, 0.25F, 0.125F}},
               {{0, 0.5F}, {10, 0.5F}, {11, 0.25F}, {20, 0.25F}, {21, 0.125F}, {1000, 0.125F}});
}

TEST(PiecewiseConstantDecay, TakesOneValueWithoutBoundaries) {
  expect_rates(PiecewiseConstantDecay{{}, {0.5F}}, {{0, 0.5F}, {1000, 0.5F}});
}

TEST(PiecewiseConstantDecay, IsDescribedWithAllItsOptions) {
  EXPECT_EQ((PiecewiseConstantDecay{{10, 20}, {0.1F, 0.01F, 0}}.configuration()),
            R"({"kind":"piecewise_constant_decay","boundaries":[10,20],"values":[0.1,0.01,0]})");
}

TEST(PiecewiseConstantDecay, RefusesOptionsOutOfTheirRange) {
  expect_refused([] { PiecewiseConstantDecay({10, 20}, {0.5F, 0.25F}); }, "a value too few");
  expect_refused([] { PiecewiseConstantDecay({10}, {0.5F, 0.25F, 0.125F}); }, "a value too many");
  expect_refused([] { PiecewiseConstantDecay({20, 10}, {0.5F, 0.25F, 0.125F}); }, "boundaries that fall");
  expect_refused([] { PiecewiseConstantDecay({10, 10}, {0.5F, 0.25F, 0.125F}); }, "a boundary twice");
  expect_refused([] { PiecewiseConstantDecay({-1}, {0.5F, 0.25F}); }, "a negative boundary");
  expect_refused([] { PiecewiseConstantDecay({10}, {0.5F, -0.25F}); }, "a negative rate");
}

}  // namespace
}  // namespace holdfast
