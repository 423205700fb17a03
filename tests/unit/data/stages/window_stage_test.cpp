#include "data/stages/window_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "unit/data/support/loaded.h"
#include "unit/data/support/numbers.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(WindowStage, PutsSamplesThatFollowOneAnotherIntoOne) {
  const Dataset windows = numbers(5).window(3);

  ASSERT_EQ(windows.size(), 3);
  EXPECT_EQ(windows.feature_shape(), (Shape{3, 2}));
  EXPECT_EQ(windows.target_shape(), Shape{});
  EXPECT_THAT(loaded(windows, 0, 0, 1), ElementsAre(1, 1.5, 2, 2.5, 3, 3.5, -3));
}

TEST(WindowStage, TakesEachSampleOfAStrideAndMovesByTheShift) {
  const Dataset windows = numbers(9).window(2, {.stride = 3, .shift = 2});

  ASSERT_EQ(windows.size(), 3);
  EXPECT_THAT(loaded(windows, 0, 0, 2), ElementsAre(4, 4.5, 7, 7.5, -7));
}

TEST(WindowStage, GivesTargetsOfAllSamplesIfAsked) {
  const Dataset windows = numbers(4).window(2, {.shift = 2, .targets = WindowTargets::all});

  EXPECT_EQ(windows.target_shape(), Shape{2});
  EXPECT_THAT(loaded(windows, 0, 0, 1), ElementsAre(2, 2.5, 3, 3.5, -2, -3));
}

TEST(WindowStage, KeepsTypesAndArrays) {
  const Dataset data =
      from_tensors({{"id", Tensor({3}, std::vector<std::uint8_t>{7, 8, 9})}, {"x", Tensor({3}, {1, 2, 3})}},
                   {{"y", Tensor({3}, {4, 5, 6})}});
  const Dataset windows = data.window(2);
  std::vector<float> inputs(windows.input_layout().words());
  std::vector<float> targets(1);
  windows.load(0, 0, 1, {.features = inputs, .targets = targets});
  const ArrayRow row(windows.input_layout(), inputs);

  EXPECT_THAT(row.elements<std::uint8_t>("id"), ElementsAre(8, 9));
  EXPECT_THAT(row.elements<float>("x"), ElementsAre(2, 3));
  EXPECT_EQ(targets[0], 6);
}

// The positions that a stage says it reaches, compared with those that it loads.
TEST(WindowStage, ReachesTheSamplesThatItLoads) {
  for (const WindowOptions& options : {WindowOptions{}, WindowOptions{.stride = 3}, WindowOptions{.shift = 2},
                                       WindowOptions{.shift = 7}, WindowOptions{.stride = 2, .shift = 9}}) {
    const Dataset data = numbers(40);
    const Dataset windows = data.window(3, options);
    const PositionSet reached = windows.last_stage()->reach(PositionSet({{1, 3}}), 0);
    for (std::int64_t window = 1; window < 3; ++window) {
      const std::vector<float> row = loaded(windows, 0, 0, window);
      for (std::size_t i = 0; i < 6; i += 2) {
        const auto position = static_cast<std::int64_t>(row[i]);
        EXPECT_FALSE(reached.intersection(PositionSet({{position, position + 1}})).is_empty()) << position;
      }
    }
  }
}

TEST(WindowStage, RefusesWindowsThatDoNotFit) {
  const auto expect_refused = [](const auto& function, const std::string& reason) {
    try {
      function();
      ADD_FAILURE() << "nothing was wrong; expected: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(reason));
    }
  };

  expect_refused([] { numbers(4).window(5); }, "window() of 5 samples at a stride of 1 does not fit into 4");
  expect_refused([] { numbers(4).window(3, {.stride = 2}); }, "does not fit");
  expect_refused([] { numbers(4).window(1LL << 40, {.stride = 1LL << 40}); }, "does not fit");
  expect_refused([] { numbers(4).window(0); }, "at least 1, not 0, 1 and 1");
  expect_refused([] { numbers(4).window(2, {.stride = 0}); }, "at least 1");
  expect_refused([] { numbers(4).window(2, {.shift = -1}); }, "at least 1");
  EXPECT_EQ(numbers(4).window(4).size(), 1);
}

}  // namespace
}  // namespace holdfast
