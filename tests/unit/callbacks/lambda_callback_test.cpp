#include "holdfast/train/lambda_callback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "support/played_context.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::ElementsAre;

TEST(LambdaCallback, CallsTheFunctionsThatItHas) {
  std::vector<std::string> calls;
  LambdaCallback callback({.on_fit_begin = [&](TrainingContext&) { calls.push_back("fit"); },
                           .on_step_begin = [&](TrainingContext&) { calls.push_back("begun"); },
                           .on_step_end = [&](TrainingContext&, const Logs&) { calls.push_back("step"); },
                           .on_fit_end = [&](TrainingContext&, const Logs&) { calls.push_back("end"); }});
  PlayedContext context;

  callback.on_fit_begin(context);
  callback.on_epoch_begin(context);
  callback.on_step_begin(context);
  callback.on_step_end(context, {});
  callback.on_epoch_end(context, {});
  callback.on_fit_end(context, {});

  EXPECT_THAT(calls, ElementsAre("fit", "begun", "step", "end"));
}

TEST(LambdaCallback, WatchesEvaluationsAndPredictions) {
  std::vector<std::string> calls;
  const auto note = [&](const char* call) { return [&calls, call](const TrainingContext&) { calls.push_back(call); }; };
  const auto note_batch = [&](const char* call) {
    return
        [&calls, call](const TrainingContext&, std::int64_t batch) { calls.push_back(call + std::to_string(batch)); };
  };
  LambdaCallback callback(
      {.on_test_begin = note("test"),
       .on_test_batch_begin = note_batch("<"),
       .on_test_batch_end = [&](const TrainingContext&, std::int64_t, const Logs&) { calls.push_back(">"); },
       .on_test_end = [&](const TrainingContext&, const Logs&) { calls.push_back("tested"); },
       .on_predict_begin = note("predict"),
       .on_predict_batch_begin = note_batch("<"),
       .on_predict_batch_end = note_batch(">"),
       .on_predict_end = note("predicted")});
  PlayedContext context;

  callback.on_test_begin(context);
  callback.on_test_batch_begin(context, 0);
  callback.on_test_batch_end(context, 0, {});
  callback.on_test_end(context, {});
  callback.on_predict_begin(context);
  callback.on_predict_batch_begin(context, 1);
  callback.on_predict_batch_end(context, 1);
  callback.on_predict_end(context);

  EXPECT_THAT(calls, ElementsAre("test", "<0", ">", "tested", "predict", "<1", ">1", "predicted"));
}

LambdaCallback counting() {
  return LambdaCallback({.name = "count",
                         .state = {{"steps", std::int64_t{0}}},
                         .on_step_end = [](CallbackState& state, TrainingContext&, const Logs&) {
                           ++std::get<std::int64_t>(state.at("steps"));
                         }});
}

TEST(LambdaCallback, KeepsTheStateThatItsFunctionsChange) {
  PlayedContext context;
  LambdaCallback before = counting();
  before.on_fit_begin(context);
  before.on_step_end(context, {});
  before.on_step_end(context, {});

  LambdaCallback after = counting();
  after.restore(before.state());
  after.on_step_end(context, {});

  EXPECT_EQ(std::get<std::int64_t>(after.state().at("steps")), 3);
  after.on_fit_begin(context);
  EXPECT_EQ(std::get<std::int64_t>(after.state().at("steps")), 0);
}

TEST(LambdaCallback, NeedsAName) {
  EXPECT_EQ(code_thrown_by([] { LambdaCallback refused({.name = ""}); }), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace holdfast
