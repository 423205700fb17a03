#include "holdfast/optim/inverse_time_decay.h"

#include "unit/optim/support/rates.h"

namespace holdfast {
namespace {

TEST(InverseTimeDecay, FollowsItsFormula) {
  expect_rates(InverseTimeDecay{0.1F, 50, 0.5F}, {{0, 0.1F},
                                                  {1, 0.0990099013F},
                                                  {7, 0.0934579447F},
                                                  {50, 0.0666666701F},
                                                  {101, 0.0497512445F},
                                                  {1000, 0.0090909088F}});
}

TEST(InverseTimeDecay, GoesDownInStairs) {
  expect_rates(InverseTimeDecay{0.1F, 50, 0.5F, {.staircase = true}},
               {{0, 0.1F}, {49, 0.1F}, {50, 0.0666666701F}, {99, 0.0666666701F}, {101, 0.0500000007F}});
}

TEST(InverseTimeDecay, IsDescribedWithAllItsOptions) {
  EXPECT_EQ((InverseTimeDecay{0.1F, 50, 0.5F, {.staircase = true}}.configuration()),
            R"({"kind":"inverse_time_decay","initial_learning_rate":0.1,"decay_steps":50,"decay_rate":0.5,)"
            R"("staircase":true})");
}

TEST(InverseTimeDecay, RefusesOptionsOutOfTheirRange) {
  expect_refused([] { InverseTimeDecay(-0.1F, 50, 0.5F); }, "a negative rate");
  expect_refused([] { InverseTimeDecay(0.1F, 0, 0.5F); }, "no steps");
  expect_refused([] { InverseTimeDecay(0.1F, 50, -0.5F); }, "a divisor that may become 0");
}

}  // namespace
}  // namespace holdfast
