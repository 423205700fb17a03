// The JSON of a training state: it must come back with the same bits, and other text must be refused in words of our
// own.

#include "train/state/train_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "holdfast/base/error.h"
#include "holdfast/format/catalogue.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/model.h"
#include "holdfast/nn/recompute.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using testing::Not;

TrainState example() {
  TrainState state;
  state.seed = 0xFFFF'FFFF'FFFF'FFFFULL;
  state.shards = 4;
  state.graph = R"({"layers":[]})";
  state.configuration = R"({"optimizer":{"learning_rate":0.001,"name":"adam"}})";
  state.step = 120;
  state.epoch = 3;
  state.batch = 17;
  CallRecord fit;
  fit.kind = "fit";
  fit.data = R"({"size":600})";
  fit.epochs = 5;
  fit.results = {{"loss", 0.1}, {"val_loss", std::numeric_limits<double>::infinity()}};
  fit.history = {{{"loss", 1.0 / 3.0}}, {{"loss", std::nextafter(0.1, 1.0)}}};
  fit.epoch_sums = {12.5, 1e-300};
  fit.epoch_samples = 1105;
  state.calls.push_back(fit);
  state.callbacks["0/mine"] = {{"integer", std::int64_t{1}},
                               {"real", 1.0},
                               {"nothing", std::numeric_limits<double>::quiet_NaN()},
                               {"text", std::string("inf")},
                               {"reals", std::vector<double>{-std::numeric_limits<double>::infinity(), 0.1}}};
  return state;
}

std::string refusal(const TrainState& saved, const TrainState& now) {
  try {
    require_same_choices(saved, now, "a savepoint");
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::incompatible);
    return failure.what();
  }
  return "";
}

}  // namespace

TEST(TrainState, HoldsALearningRateThatACallbackSet) {
  TrainState state = example();
  EXPECT_THAT(to_json(state), Not(HasSubstr("\n \"learning_rate\"")));
  EXPECT_EQ(train_state_from_json(to_json(state), "a savepoint").learning_rate, std::nullopt);

  for (const float rate : {0.1F, 1e-30F, 0.0F, std::nextafter(0.1F, 1.0F)}) {
    state.learning_rate = rate;
    EXPECT_EQ(train_state_from_json(to_json(state), "a savepoint").learning_rate, rate);
    EXPECT_EQ(train_state_from_replica_json(to_replica_json(state)).learning_rate, rate);
  }
}

TEST(TrainState, SaysWhichTrainerOfTheRunItIsOfUnlessThatIsTheFirst) {
  TrainState state = example();
  EXPECT_THAT(to_json(state), Not(HasSubstr("\"trainer\"")));

  state.trainer = 2;

  EXPECT_EQ(train_state_from_json(to_json(state), "a savepoint").trainer, 2);
}

TEST(TrainState, RefusesALearningRateThatNoCallbackCanSet) {
  TrainState state = example();
  state.learning_rate = 0.25F;
  const std::string text = to_json(state);
  const std::string member = "\"learning_rate\": 0.25";
  ASSERT_NE(text.find(member), std::string::npos) << text;
  for (const std::string wrong : {"-0.25", "1e99", "\"0.25\"", "null"}) {
    std::string changed = text;
    changed.replace(text.find(member), member.size(), "\"learning_rate\": " + wrong);
    try {
      train_state_from_json(changed, "a savepoint");
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_file);
      EXPECT_THAT(error.what(), HasSubstr("learning_rate"));
    }
  }
}

TEST(TrainState, ComesBackFromJsonWithTheSameBits) {
  const TrainState state = example();

  const TrainState back = train_state_from_json(to_json(state), "a test");

  EXPECT_EQ(to_json(back), to_json(state));
  EXPECT_EQ(back.seed, state.seed);
  EXPECT_EQ(back.calls[0].history, state.calls[0].history);
  EXPECT_EQ(back.calls[0].results, state.calls[0].results);
  EXPECT_EQ(back.callbacks.at("0/mine").at("text"), state.callbacks.at("0/mine").at("text"));
  EXPECT_EQ(back.callbacks.at("0/mine").at("reals"), state.callbacks.at("0/mine").at("reals"));
  EXPECT_TRUE(std::isnan(std::get<double>(back.callbacks.at("0/mine").at("nothing"))));
  EXPECT_EQ(back.callbacks.at("0/mine").at("integer").index(), 0U);
  EXPECT_EQ(back.callbacks.at("0/mine").at("real").index(), 1U);
}

// A run that was short of memory could not be started again with recomputed segments, though no bit depends on them.
TEST(TrainState, GoesOnWithOtherRecomputedSegments) {
  const auto state_of = [](const std::function<Value(const Value&)>& body) {
    const Value x = input({4});
    TrainState state = example();
    state.graph = Model(x, body(x)).graph();
    return state;
  };
  const Dense first{4, {.name = "first"}}, second{4, {.name = "second"}};
  const TrainState chain = state_of([&](const Value& x) { return second(first(x)); });
  const TrainState recomputed = state_of([&](const Value& x) { return recompute([&] { return second(first(x)); }); });
  const TrainState half = state_of([&](const Value& x) { return second(recompute([&] { return first(x); })); });
  const TrainState residual = state_of([&](const Value& x) { return second(first(x)) + x; });
  const TrainState residual_recomputed =
      state_of([&](const Value& x) { return recompute([&] { return second(first(x)); }) + x; });

  EXPECT_NE(chain.graph, recomputed.graph);
  for (const TrainState* const now : {&chain, &recomputed, &half}) {
    for (const TrainState* const saved : {&chain, &recomputed, &half}) EXPECT_EQ(refusal(*saved, *now), "");
  }
  EXPECT_EQ(refusal(residual, residual_recomputed), "");
  EXPECT_EQ(refusal(residual_recomputed, residual), "");
  EXPECT_THAT(refusal(recomputed, residual), HasSubstr("model/"));
  EXPECT_THAT(refusal(recomputed, state_of([&](const Value& x) { return first(x); })), HasSubstr("model/layers"));
}

TEST(TrainState, RecordsThatSumsHadTheLibrarysOrder) {
  TrainState state = example();
  EXPECT_FALSE(to_json(state).find("reduction") != std::string::npos);

  state.reduction = Reduction::fastest;
  const TrainState back = train_state_from_json(to_json(state), "a test");

  EXPECT_EQ(back.reduction, Reduction::fastest);
  EXPECT_EQ(to_json(back), to_json(state));
  EXPECT_NE(refusal(state, example()).find(R"(reduction was "fastest" and is "shard_order")"), std::string::npos);
}

TEST(TrainState, HasMetricsOnlyBetweenEpochs) {
  TrainState state = example();
  EXPECT_EQ(format::metric_of(to_json(state), "loss"), std::nullopt) << "it is in the middle of an epoch";

  state.batch = 0;
  EXPECT_EQ(format::metric_of(to_json(state), "loss"), std::nextafter(0.1, 1.0));

  state.calls.emplace_back(state.calls.back()).history.clear();
  EXPECT_EQ(format::metric_of(to_json(state), "loss"), std::nullopt) << "another fit() has begun";
}

TEST(TrainState, RefusesTextThatItDidNotWrite) {
  for (const char* text : {"", "[]", "{}", R"({"kind":"model"})", R"({"kind":"savepoint","step":"many"})"}) {
    EXPECT_THROW(train_state_from_json(text, "a test"), Error) << text;
  }
  std::string broken = to_json(example());
  broken.replace(broken.find("\"reals\": ["), 7, "\"royal\"");
  EXPECT_THROW(train_state_from_json(broken, "a test"), Error);
}

TEST(TrainState, RefusesListsSoDeepThatPrintingThemWouldOverflowTheStack) {
  std::string text = to_json(example());
  const std::string graph = R"("graph": {)";
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  text.replace(text.find(graph), graph.size(), R"("graph": {"deep": )" + deep + ",");

  try {
    train_state_from_json(text, "a test");
    ADD_FAILURE() << "read it";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nested deeper than any"), std::string::npos) << error.what();
  }
}

TEST(TrainState, RefusesEmptyValuesOfCallbacks) {
  std::string broken = to_json(example());
  const std::size_t begin = broken.find("{", broken.find("\"integer\""));
  const std::size_t end = broken.find("}", begin);
  broken.replace(begin, end - begin + 1, "{}");

  EXPECT_THROW(train_state_from_json(broken, "a test"), Error);
}

TEST(TrainState, SaysInItsOwnWordsWhatItCannotRead) {
  const auto sentence_of = [](const std::string& text) -> std::string {
    try {
      train_state_from_json(text, "x.h5");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_file);
      return error.what();
    }
    return "";
  };
  std::string other_step = to_json(example());
  other_step.replace(other_step.find("\"step\": 120"), 11, "\"step\": \"many\"");
  std::string no_seed = to_json(example());
  no_seed.replace(no_seed.find("\"seed\""), 6, "\"sead\"");

  EXPECT_THAT(sentence_of(R"({"kind":"keras"})"), HasSubstr("--like SAVEPOINT"));
  EXPECT_THAT(sentence_of("{"), HasSubstr("the metadata of x.h5 cannot be read as a training state: it is not JSON"));
  EXPECT_THAT(sentence_of(other_step), HasSubstr("its \"step\" is of type string and not a whole number"));
  EXPECT_THAT(sentence_of(no_seed), HasSubstr("it has no \"seed\""));
  for (const char* step : {"-1", "9223372036854775808"}) {
    std::string wrong_step = to_json(example());
    wrong_step.replace(wrong_step.find("\"step\": 120"), 11, std::string("\"step\": ") + step);
    EXPECT_THAT(sentence_of(wrong_step), HasSubstr(std::string("its \"step\" is ") + step));
  }
  for (const std::string& text : {std::string("{"), std::string("[1]"), other_step, no_seed}) {
    EXPECT_THAT(sentence_of(text), Not(HasSubstr("json.exception")));
  }
}

// Savepoints of runs that skipped no step do not have the key.
TEST(TrainState, RecordsSkippedSamplesIfThereAreAny) {
  TrainState state = example();
  EXPECT_THAT(to_json(state), Not(HasSubstr("skipped")));

  state.calls[0].epoch_skipped_samples = 64;

  EXPECT_EQ(train_state_from_json(to_json(state), "a test").calls[0].epoch_skipped_samples, 64);
}

TEST(TrainState, NamesEachChoiceThatDiffersWithBothValues) {
  const TrainState saved = example();
  TrainState now = saved;
  EXPECT_EQ(refusal(saved, now), "");

  now.seed = 7;
  now.configuration = R"({"optimizer":{"learning_rate":0.002,"name":"adam"}})";
  now.calls[0].epochs = 6;
  const std::string sentence = refusal(saved, now);

  EXPECT_NE(sentence.find("seed was 18446744073709551615 and is 7"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("training/optimizer/learning_rate was 0.001 and is 0.002"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("epochs was 5 and is 6"), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find("shards"), std::string::npos) << sentence;
}

// Versions before adds_as_one_batch added three batches in another order than this one does.
TEST(TrainState, IsRefusedIfAccumulatedBatchesWereAddedInAnotherOrder) {
  TrainState saved = example();
  ASSERT_FALSE(saved.calls.empty());
  saved.calls.front().accumulate = 3;
  saved.calls.front().is_finished = false;
  TrainState now = saved;
  now.calls.front().adds_as_one_batch = true;

  EXPECT_NE(refusal(saved, now)
                .find("order in which accumulated batches are added was \"that of an earlier version\" "
                      "and is \"that of one batch\""),
            std::string::npos)
      << refusal(saved, now);

  // What is done stays done.
  saved.calls.front().is_finished = true;
  EXPECT_EQ(refusal(saved, now), "");
}

// A missing value was written as the text "absent", which a value may be too.
TEST(TrainState, TellsAMissingChoiceFromOneThatIsAnyText) {
  TrainState saved = example(), now = saved;
  saved.configuration = R"({"name":"absent"})";
  now.configuration = R"({"other":1})";

  const std::string sentence = refusal(saved, now);

  EXPECT_NE(sentence.find(R"(training/name was "absent" and is not set)"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("training/other was not set and is 1"), std::string::npos) << sentence;
}

constexpr FitStage kStages[] = {FitStage::before_epoch, FitStage::in_epoch, FitStage::last_step,
                                FitStage::ending,       FitStage::closing,  FitStage::between_calls};

TEST(TrainState, ReachesAnotherReplicaWithItsStage) {
  for (const FitStage stage : kStages) {
    TrainState state = example();
    state.stage = stage;

    const TrainState back = train_state_from_replica_json(to_replica_json(state));

    EXPECT_EQ(back.stage, stage);
    EXPECT_EQ(to_json(back), to_json(state));
  }
}

// A savepoint holds a state between two steps. Its bytes must not depend on how the run got there.
TEST(TrainState, HasNoStageInASavepoint) {
  const std::string text = to_json(example());

  for (const FitStage stage : kStages) {
    // These change what comes next, as the tests below show.
    if (stage == FitStage::ending || stage == FitStage::last_step) continue;
    TrainState state = example();
    state.stage = stage;
    EXPECT_EQ(to_json(state), text);
  }
}

TEST(TrainState, GetsTheStageOfASavepointFromItsPosition) {
  const auto stage_of = [](std::int64_t batch, bool is_finished) {
    TrainState state = example();
    state.batch = batch;
    state.calls.back().is_finished = is_finished;
    return train_state_from_json(to_json(state), "a test").stage;
  };

  EXPECT_EQ(stage_of(17, false), FitStage::in_epoch);
  EXPECT_EQ(stage_of(0, false), FitStage::before_epoch);
  EXPECT_EQ(stage_of(0, true), FitStage::between_calls);
}

// A run that was stopped in the validation of its last epoch trained on, although on_step_end() had asked for the end.
TEST(TrainState, KnowsInASavepointThatACallbackAskedForTheEnd) {
  TrainState state = example();
  state.batch = 17;
  state.calls.back().is_finished = false;
  state.stage = FitStage::in_epoch;
  const std::string before = to_json(state);
  state.stage = FitStage::ending;

  EXPECT_EQ(train_state_from_json(to_json(state), "a test").stage, FitStage::ending);
  EXPECT_EQ(train_state_from_json(before, "a test").stage, FitStage::in_epoch);
  EXPECT_EQ(to_json(train_state_from_json(to_json(state), "a test")), to_json(state));
}

TEST(TrainState, KnowsInASavepointThatACallbackAskedForTheEndAfterTheNextStep) {
  TrainState state = example();
  state.batch = 17;
  state.calls.back().is_finished = false;
  state.stage = FitStage::last_step;

  EXPECT_EQ(train_state_from_json(to_json(state), "a test").stage, FitStage::last_step);
  EXPECT_EQ(to_json(train_state_from_json(to_json(state), "a test")), to_json(state));
}

TEST(TrainState, RefusesAStageThatItDoesNotKnow) {
  std::string text = to_replica_json(example());
  text.replace(text.find("between_calls"), std::string("between_calls").size(), "in_between");

  EXPECT_THROW(train_state_from_replica_json(text), Error);
}

}  // namespace holdfast
