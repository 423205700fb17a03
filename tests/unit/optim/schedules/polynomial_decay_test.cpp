#include "holdfast/optim/polynomial_decay.h"

#include "unit/optim/support/rates.h"

namespace holdfast {
namespace {

TEST(PolynomialDecay, FallsLinearlyByDefault) {
  expect_rates(PolynomialDecay{0.1F, 100}, {{0, 0.1F},
                                            {1, 0.0990010015F},
                                            {7, 0.0930070014F},
                                            {50, 0.0500500007F},
                                            {99, 0.00109900001F},
                                            {100, 1e-4F},
                                            {1000, 1e-4F}});
}

TEST(PolynomialDecay, FollowsItsPower) {
  expect_rates(PolynomialDecay{0.1F, 100, {.end_learning_rate = 0.01F, .power = 2}},
               {{0, 0.1F}, {1, 0.0982090015F}, {50, 0.0325F}, {99, 0.0100089998F}, {100, 0.01F}, {101, 0.01F}});
}

TEST(PolynomialDecay, BeginsALongerPeriodAfterEachOne) {
  expect_rates(PolynomialDecay{0.1F, 100, {.end_learning_rate = 0.01F, .power = 0.5F, .cycle = true}},
               {{0, 0.1F},
                {1, 0.0995488708F},
                {99, 0.019F},
                {100, 0.01F},
                {101, 0.0733206137F},
                {250, 0.0467423466F},
                {1000, 0.01F}});
}

TEST(PolynomialDecay, IsDescribedWithAllItsOptions) {
  EXPECT_EQ((PolynomialDecay{0.1F, 100}.configuration()),
            R"({"kind":"polynomial_decay","initial_learning_rate":0.1,"decay_steps":100,"end_learning_rate":1e-04,)"
            R"("power":1,"cycle":false})");
}

TEST(PolynomialDecay, RefusesOptionsOutOfTheirRange) {
  expect_refused([] { PolynomialDecay(-0.1F, 100); }, "a negative rate");
  expect_refused([] { PolynomialDecay(0.1F, 0); }, "no steps");
  expect_refused([] { PolynomialDecay(0.1F, 100, {.end_learning_rate = -0.1F}); }, "a negative rate at the end");
  expect_refused([] { PolynomialDecay(0.1F, 100, {.power = 0}); }, "a power of 0");
}

}  // namespace
}  // namespace holdfast
