#include "data/passes/filter_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
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

TEST(FilterStage, WithAnIndexJudgesSamplesOnceForAllStarts) {
  TemporaryFolder folder;
  const std::string index = folder / "even.index";
  int calls = 0;
  const auto counted = [&calls](const SampleArrays& sample) {
    ++calls;
    return is_even(sample);
  };
  // More numbers than a block of the file has.
  const Dataset written = numbers(2500).filter(counted, {.name = "even", .index = index});
  const Dataset read = numbers(2500).filter(counted, {.name = "even", .index = index});

  EXPECT_EQ(calls, 2500);
  EXPECT_EQ(first_features(read, 0), first_features(numbers(2500).filter(is_even), 0));
  EXPECT_EQ(written.description(), read.description());
  EXPECT_EQ(read.description(), numbers(2500).filter(is_even, "even").description());
}

TEST(FilterStage, IsFoundByOneOfSeveralThatShareAnIndex) {
  TemporaryFolder folder;
  std::atomic<int> calls = 0;
  const auto counted = [&calls](const SampleArrays& sample) {
    ++calls;
    return is_even(sample);
  };
  std::vector<std::vector<float>> kept(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : kept) {
      threads.emplace_back(
          [&] { mine = first_features(numbers(20).filter(counted, {.name = "even", .index = folder / "index"}), 0); });
    }
  }

  EXPECT_EQ(calls, 20);
  for (const auto& mine : kept) EXPECT_EQ(mine, kept[0]);
}

TEST(FilterStage, RefusesAnIndexOfOtherSamplesOrAnotherFunction) {
  TemporaryFolder folder;
  const std::string index = folder / "even.index";
  numbers(7).filter(is_even, {.name = "even", .index = index});

  EXPECT_EQ(code_thrown_by([&] { numbers(8).filter(is_even, {.name = "even", .index = index}); }),
            ErrorCode::incompatible);
  EXPECT_EQ(code_thrown_by([&] { numbers(7).filter(is_even, {.name = "odd", .index = index}); }),
            ErrorCode::incompatible);
  std::filesystem::resize_file(index, std::filesystem::file_size(index) - 1);
  EXPECT_EQ(code_thrown_by([&] { numbers(7).filter(is_even, {.name = "even", .index = index}); }),
            ErrorCode::invalid_file);
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

TEST(FilterStage, RefusesWrongFunctionsAndPlaces) {
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
