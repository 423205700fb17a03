#include "holdfast/optim/cosine_decay.h"

#include <limits>

#include "unit/optim/support/rates.h"

namespace holdfast {
namespace {

TEST(CosineDecay, FollowsItsFormula) {
  expect_rates(CosineDecay{0.1F, 100}, {{0, 0.1F},
                                        {1, 0.0999753295F},
                                        {7, 0.0987958396F},
                                        {50, 0.05F},
                                        {99, 2.46719821e-05F},
                                        {100, 0.0F},
                                        {1000, 0.0F}});
}

TEST(CosineDecay, LeavesAPartOfTheRate) {
  expect_rates(CosineDecay{0.1F, 100, {.alpha = 0.05F}},
               {{0, 0.1F}, {7, 0.0988560477F}, {99, 0.00502343853F}, {100, 0.005F}, {101, 0.005F}});
}

TEST(CosineDecay, WarmsUpFirst) {
  expect_rates(CosineDecay{0.01F, 100, {.alpha = 0.05F, .warmup_target = 0.2F, .warmup_steps = 50}},
               {{0, 0.01F},
                {1, 0.0137999998F},
                {7, 0.0366000002F},
                {50, 0.2F},
                {99, 0.107984024F},
                {100, 0.105000002F},
                {150, 0.01F},
                {1000, 0.01F}});
}

// Keras does the same.
TEST(CosineDecay, DoesNotWarmUpWithoutATarget) {
  expect_rates(CosineDecay{0.1F, 100, {.warmup_steps = 50}}, {{0, 0.1F}, {1, 0.0999753295F}, {100, 0.0F}});
}

TEST(CosineDecay, IsDescribedWithAllItsOptions) {
  EXPECT_EQ((CosineDecay{0.1F, 100}.configuration()),
            R"({"kind":"cosine_decay","initial_learning_rate":0.1,"decay_steps":100,"alpha":0,"warmup_target":null,)"
            R"("warmup_steps":0})");
  EXPECT_EQ((CosineDecay{0, 100, {.alpha = 0.5F, .warmup_target = 0.1F, .warmup_steps = 5}}.configuration()),
            R"({"kind":"cosine_decay","initial_learning_rate":0,"decay_steps":100,"alpha":0.5,"warmup_target":0.1,)"
            R"("warmup_steps":5})");
}

TEST(CosineDecay, RefusesOptionsOutOfTheirRange) {
  expect_refused([] { CosineDecay(std::numeric_limits<float>::quiet_NaN(), 100); }, "a rate that is not a number");
  expect_refused([] { CosineDecay(0.1F, -1); }, "negative steps");
  expect_refused([] { CosineDecay(0.1F, 100, {.alpha = 1.5F}); }, "a part of more than all");
  expect_refused([] { CosineDecay(0.1F, 100, {.warmup_target = -1.0F}); }, "a negative target");
  expect_refused([] { CosineDecay(0.1F, 100, {.warmup_steps = -1}); }, "negative steps of warm-up");
}

}  // namespace
}  // namespace holdfast
