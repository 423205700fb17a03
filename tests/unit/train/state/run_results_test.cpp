#include "train/state/run_results.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "holdfast/train/run_results.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

TrainState finished_state() {
  TrainState state;
  state.step = 12;
  CallRecord fit;
  fit.kind = "fit";
  fit.results = {{"loss", 0.1}};
  fit.history = {{{"loss", 1.0 / 3.0}}, {{"loss", 0.1}}};
  CallRecord evaluation;
  evaluation.kind = "evaluate";
  evaluation.results = {{"a", std::numeric_limits<double>::infinity()}, {"loss", std::nan("")}};
  state.calls = {fit, evaluation};
  return state;
}

}  // namespace

TEST(RunResults, AreReadAsTheyWereWritten) {
  const TemporaryFolder folder;
  Replica::Context context;
  context.run_directory = folder.path();
  context.results = results_text(finished_state(), Digest{});

  keep_results(context);
  const RunResults read = run_results(folder.path());

  EXPECT_EQ(read.steps, 12);
  EXPECT_EQ(read.weights_digest, Digest{}.hex());
  ASSERT_EQ(read.calls.size(), 2U);
  EXPECT_EQ(read.calls[0].kind, "fit");
  EXPECT_EQ(read.calls[0].results, finished_state().calls[0].results);
  EXPECT_EQ(read.calls[0].history, finished_state().calls[0].history);
  EXPECT_TRUE(std::isinf(read.calls[1].results.at("a")));
  EXPECT_TRUE(std::isnan(read.calls[1].results.at("loss")));
}

TEST(RunResults, AreThoseOfAllTrainersOfARun) {
  const TemporaryFolder folder;
  Replica::Context context;
  context.run_directory = folder.path();
  note_results(context, finished_state(), Digest{});
  context.earlier_results = context.results;
  TrainState second;
  second.step = 5;
  second.calls.emplace_back();
  second.calls[0].kind = "predict";

  note_results(context, second, Digest{{1}});
  keep_results(context);
  const RunResults read = run_results(folder.path());

  EXPECT_EQ(read.steps, 12 + 5);
  EXPECT_EQ(read.weights_digest, Digest{{1}}.hex());
  ASSERT_EQ(read.calls.size(), 3U);
  EXPECT_EQ(read.calls[0].history, finished_state().calls[0].history);
  EXPECT_EQ(read.calls[2].kind, "predict");
}

TEST(RunResults, SayWhichSamplesWereLeftOutOnlyWhereThereAreAny) {
  const TemporaryFolder folder;
  Replica::Context context;
  context.run_directory = folder.path();
  const std::string without = results_text(finished_state(), Digest{});
  context.results = results_text(finished_state(), Digest{}, {}, {{1, {.count = 3, .first = {"a \xff", "b"}}}});

  keep_results(context);
  const RunResults read = run_results(folder.path());

  EXPECT_EQ(without.find("skipped_samples"), std::string::npos);
  EXPECT_EQ(read.calls[0].skipped_samples.count, 0);
  EXPECT_EQ(read.calls[1].skipped_samples.count, 3);
  ASSERT_EQ(read.calls[1].skipped_samples.first.size(), 2U);
  EXPECT_EQ(read.calls[1].skipped_samples.first[1], "b");
}

TEST(RunResults, SayWhatIsWrong) {
  const TemporaryFolder folder;
  EXPECT_EQ(code_thrown_by([&] { run_results(folder.path()); }), ErrorCode::not_found);
  for (const char* text : {"", "{", "[]", R"({"steps": 1})", R"({"steps": "x", "weights_digest": "", "calls": []})"}) {
    std::ofstream(folder / "results.json") << text;
    EXPECT_EQ(code_thrown_by([&] { run_results(folder.path()); }), ErrorCode::invalid_file) << text;
  }
}

}  // namespace holdfast
