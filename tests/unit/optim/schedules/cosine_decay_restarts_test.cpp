#include "holdfast/optim/cosine_decay_restarts.h"

#include <limits>

#include "unit/optim/support/rates.h"

namespace holdfast {
namespace {

TEST(CosineDecayRestarts, DoublesItsPeriodsByDefault) {
  expect_rates(CosineDecayRestarts{0.1F, 30}, {{0, 0.1F},
                                               {1, 0.0997260958F},
                                               {15, 0.0500000007F},
                                               {29, 0.000273905229F},
                                               {30, 0.1F},
                                               {60, 0.0500000007F},
                                               {89, 6.85232662e-05F},
                                               {90, 0.1F},
                                               {209, 1.71337506e-05F},
                                               {210, 0.1F}});
}

TEST(CosineDecayRestarts, RestartsFromLowerRatesInPeriodsOfOneLength) {
  expect_rates(CosineDecayRestarts{0.1F, 30, {.t_mul = 1, .m_mul = 0.5F, .alpha = 0.05F}},
               {{0, 0.1F}, {15, 0.0525000021F}, {30, 0.0525000021F}, {75, 0.0168750007F}, {210, 0.00574218761F}});
}

TEST(CosineDecayRestarts, TakesAnyGrowth) {
  expect_rates(CosineDecayRestarts{0.1F, 30, {.t_mul = 1.5F, .m_mul = 0.9F}},
               {{30, 0.0899999961F}, {75, 0.0810000002F}, {90, 0.0715247989F}, {209, 0.0192130655F}});
}

// The quotient of logarithms that says which period it is may be below a whole number at the beginning of one.
TEST(CosineDecayRestarts, BeginsEachPeriodAtTheTop) {
  std::int64_t begin = 0;
  for (std::int64_t length = 7; length < std::int64_t{1} << 40; length *= 3) {
    EXPECT_FLOAT_EQ((CosineDecayRestarts{0.25F, 7, {.t_mul = 3}}.rate_after(begin)), 0.25F) << begin;
    begin += length;
  }
}

TEST(CosineDecayRestarts, IsDescribedWithAllItsOptions) {
  EXPECT_EQ((CosineDecayRestarts{0.1F, 100}.configuration()),
            R"({"kind":"cosine_decay_restarts","initial_learning_rate":0.1,"first_decay_steps":100,"t_mul":2,)"
            R"("m_mul":1,"alpha":0})");
}

TEST(CosineDecayRestarts, RefusesOptionsOutOfTheirRange) {
  expect_refused([] { CosineDecayRestarts(-0.1F, 100); }, "a negative rate");
  expect_refused([] { CosineDecayRestarts(0.1F, 0); }, "no steps");
  expect_refused([] { CosineDecayRestarts(0.1F, 100, {.t_mul = 0.5F}); }, "periods that become shorter");
  expect_refused([] { CosineDecayRestarts(0.1F, 100, {.m_mul = -1}); }, "a negative height");
  expect_refused([] { CosineDecayRestarts(0.1F, 100, {.alpha = std::numeric_limits<float>::quiet_NaN()}); },
                 "a part that is not a number");
}

}  // namespace
}  // namespace holdfast
