#include "data/stages/filter_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "unit/data/support/loaded.h"
#include "unit/data/support/numbers.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

bool is_even(const SampleArrays& sample) {
  return static_cast<int>(sample.inputs.elements<float>(0)[0]) % 2 == 0;
}

TEST(FilterStage, KeepsTheSameSamplesInEachEpoch) {
  const Dataset kept = numbers(7).filter(is_even, "even");

  ASSERT_EQ(kept.size(), 4);
  EXPECT_THAT(first_features(kept, 0), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(first_features(kept, 5), ElementsAre(0, 2, 4, 6));
}

TEST(FilterStage, JudgesSamplesOnceAndNotAtEachLoad) {
  int calls = 0;
  const Dataset kept = numbers(5).filter([&calls](const SampleArrays&) { return ++calls > 0; });
  first_features(kept, 0);
  first_features(kept, 1);

  EXPECT_EQ(calls, 5);
}

TEST(FilterStage, LeavesTheSourceToBatchesThatAreKeptOnADevice) {
  EXPECT_NO_THROW(numbers(7).filter(is_even).shuffle().keep_on_device());
}

TEST(FilterStage, IsDescribedByWhatItKeeps) {
  const auto above = [](float limit) {
    return numbers(9).filter(
        [limit](const SampleArrays& sample) { return sample.inputs.elements<float>(0)[0] > limit; }, "above");
  };

  EXPECT_EQ(above(3).description(), above(3.5F).description());
  EXPECT_NE(above(3).description(), above(4).description());
  EXPECT_THAT(above(3).description(), HasSubstr(R"({"kind":"filter","name":"above","kept":5,"digest":")"));
}

TEST(FilterStage, RefusesWhatCannotBeMeant) {
  const auto expect_refused = [](const auto& function, const std::string& reason) {
    try {
      function();
      ADD_FAILURE() << "nothing was wrong; expected: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(reason));
    }
  };

  expect_refused([] { numbers(4).filter(nullptr); }, "an empty function");
  expect_refused([] { numbers(4).shuffle().filter(is_even); }, "filter() stands after shuffle()");
  expect_refused([] { numbers(4).filter([](const SampleArrays&) { return false; }); }, "keeps none of the 4 samples");
  expect_refused([] { numbers(4).batch(2).filter(is_even); }, "filter() stands after batch()");
}

}  // namespace
}  // namespace holdfast
