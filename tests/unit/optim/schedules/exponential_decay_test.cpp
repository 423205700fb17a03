#include "holdfast/optim/exponential_decay.h"

#include "unit/optim/support/rates.h"

namespace holdfast {
namespace {

TEST(ExponentialDecay, FollowsItsFormula) {
  expect_rates(ExponentialDecay{0.1F, 50, 0.96F}, {{0, 0.1F},
                                                   {1, 0.0999183908F},
                                                   {7, 0.0994301232F},
                                                   {50, 0.0959999993F},
                                                   {99, 0.0922352711F},
                                                   {101, 0.0920847848F},
                                                   {1000, 0.0442002243F}});
}

TEST(ExponentialDecay, GoesDownInStairs) {
  expect_rates(ExponentialDecay{0.1F, 50, 0.96F, {.staircase = true}},
               {{0, 0.1F}, {49, 0.1F}, {50, 0.0959999993F}, {99, 0.0959999993F}, {100, 0.0921599973F}});
}

TEST(ExponentialDecay, IsDescribedWithAllItsOptions) {
  EXPECT_EQ((ExponentialDecay{0.1F, 50, 0.96F, {.staircase = true}}.configuration()),
            R"({"kind":"exponential_decay","initial_learning_rate":0.1,"decay_steps":50,"decay_rate":0.96,)"
            R"("staircase":true})");
}

TEST(ExponentialDecay, RefusesOptionsOutOfTheirRange) {
  expect_refused([] { ExponentialDecay(-0.1F, 50, 0.96F); }, "a negative rate");
  expect_refused([] { ExponentialDecay(0.1F, 0, 0.96F); }, "no steps");
  expect_refused([] { ExponentialDecay(0.1F, 50, 0); }, "a factor of 0");
}

}  // namespace
}  // namespace holdfast
