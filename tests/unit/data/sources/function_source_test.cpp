#include "holdfast/data/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/batches/shared_samples.h"
#include "holdfast/base/error.h"
#include "unit/data/support/loaded.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SourceOptions squares_options() {
  return {.size = 5,
          .inputs = {{"x", {2}}, {"id", {}, DType::i64}},
          .targets = {{"square", {}}},
          .content = "squares, version 1"};
}

// Writes one of the two elements of x, so the other one shows whether rows are cleared.
void write_square(std::int64_t sample, const SampleArrays& into) {
  into.inputs.elements<float>("x")[sample % 2] = static_cast<float>(sample);
  into.inputs.elements<std::int64_t>("id")[0] = 100 + sample;
  into.targets.elements<float>("square")[0] = static_cast<float>(sample * sample);
}

template <typename Function>
void expect_refused_source(const Function& function, const std::string& reason) {
  try {
    function();
    ADD_FAILURE() << "nothing was wrong; expected: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(reason));
  }
}

TEST(FunctionSource, LoadsWhatTheFunctionWrites) {
  const Dataset data = from_source(squares_options(), write_square);
  std::vector<float> inputs(data.input_layout().words(), 77.0F);
  std::vector<float> targets(1);
  data.load(0, 0, 3, {.features = inputs, .targets = targets});
  const ArrayRow row(data.input_layout(), inputs);

  EXPECT_EQ(data.size(), 5);
  EXPECT_THAT(row.elements<float>("x"), ElementsAre(0, 3));
  EXPECT_THAT(row.elements<std::int64_t>("id"), ElementsAre(103));
  EXPECT_EQ(targets[0], 9);
}

TEST(FunctionSource, TakesStagesLikeAnyOther) {
  const Dataset data = from_source(squares_options(), write_square);

  EXPECT_EQ(data.split(2).training.size(), 3);
  EXPECT_EQ(data.shuffle().repeat(3).take(7).batch(2).batches(), 4);
}

TEST(FunctionSource, IsDescribedByItsContent) {
  SourceOptions other = squares_options();
  other.content = "squares, version 2";

  EXPECT_EQ(from_source(squares_options(), write_square).description(),
            from_source(squares_options(), write_square).description());
  EXPECT_NE(from_source(squares_options(), write_square).description(), from_source(other, write_square).description());
}

TEST(FunctionSource, IsKnownAsOneSourceByItsContent) {
  SourceOptions other = squares_options();
  other.content = "other squares";
  const Dataset training = from_source(squares_options(), write_square).take(3);

  EXPECT_EQ(shared_samples(training, from_source(squares_options(), write_square).skip(1)).value().shared, 2);
  EXPECT_FALSE(shared_samples(training, from_source(other, write_square)));
}

TEST(FunctionSource, EndsLoadingWithTheErrorOfTheFunction) {
  const Dataset data = from_source(squares_options(), [](std::int64_t sample, const SampleArrays& into) {
    if (sample == 2) throw std::runtime_error("the file ends");
    into.inputs.elements<std::int64_t>("id")[0] = std::int64_t{1} << 40;
  });

  EXPECT_THROW(loaded(data, 0, 0, 2), std::runtime_error);
  expect_refused_source([&] { loaded(data, 0, 0, 1); }, "of sample 1 is 1099511627776");
}

TEST(FunctionSource, RefusesWhatMakesNoSamples) {
  const auto with = [](const auto& change) {
    return [change] {
      SourceOptions options = squares_options();
      change(options);
      from_source(options, write_square);
    };
  };

  expect_refused_source(with([](SourceOptions& options) { options.size = 0; }), "one sample or more, not 0");
  expect_refused_source(with([](SourceOptions& options) { options.inputs.clear(); }), "at least one input");
  expect_refused_source(with([](SourceOptions& options) { options.content.clear(); }), "a `content`");
  expect_refused_source(with([](SourceOptions& options) { options.targets[0].dtype = DType::f64; }), "cannot have");
  expect_refused_source([] { from_source(squares_options(), nullptr); }, "an empty function");
}

}  // namespace
}  // namespace holdfast
