#include "holdfast/train/learning_rate_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "holdfast/base/log.h"
#include "support/played_context.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What it sets in trainings is in learning_rate_of_callbacks_test.cpp.

float halved(std::int64_t, float rate) {
  return rate / 2;
}

// The lines of two epochs on that rank.
std::vector<std::string> lines_of(LearningRateScheduler scheduler, int rank) {
  std::vector<std::string> said;
  set_log_sink([&](LogLevel, std::string_view line) { said.emplace_back(line); });
  PlayedContext context;
  context.rank_number = rank;
  context.rate = 1;
  for (context.epoch_number = 0; context.epoch_number < 2; ++context.epoch_number) scheduler.on_epoch_begin(context);
  set_log_sink({});
  EXPECT_EQ(context.rate, 0.25F);
  return said;
}

TEST(LearningRateScheduler, SaysTheRateOfEachEpochOnceWhereItIsAsked) {
  EXPECT_THAT(
      lines_of(LearningRateScheduler(halved, {.verbose = true}), 0),
      ElementsAre(HasSubstr("epoch 0: the learning rate is 0.5"), HasSubstr("epoch 1: the learning rate is 0.25")));
  EXPECT_TRUE(lines_of(LearningRateScheduler(halved, {.verbose = true}), 1).empty());
  EXPECT_TRUE(lines_of(LearningRateScheduler(halved), 0).empty());
}

TEST(LearningRateScheduler, RefusesAnEmptyFunction) {
  EXPECT_EQ(code_thrown_by([] { LearningRateScheduler({}); }), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace holdfast
