#include "compute/window.h"

#include <gtest/gtest.h>

#include "holdfast/base/error.h"

namespace holdfast::compute {
namespace {

void expect_window(const Window& window, std::int64_t count, std::int64_t before, std::int64_t after) {
  EXPECT_EQ(window.count, count);
  EXPECT_EQ(window.pad_before, before);
  EXPECT_EQ(window.pad_after, after);
}

TEST(Window, ValidKeepsInsideAndLeavesTheRest) {
  expect_window(slide(28, 5, 1, Padding::valid), 24, 0, 0);
  expect_window(slide(7, 2, 2, Padding::valid), 3, 0, 0);
  expect_window(slide(5, 5, 3, Padding::valid), 1, 0, 0);
}

TEST(Window, ValidFindsNoPlaceForALargerWindow) {
  EXPECT_EQ(slide(4, 5, 1, Padding::valid).count, 0);
}

TEST(Window, SameSplitsTheBorderWithTheOddElementAfter) {
  expect_window(slide(28, 5, 1, Padding::same), 28, 2, 2);
  expect_window(slide(28, 4, 1, Padding::same), 28, 1, 2);
  expect_window(slide(7, 3, 2, Padding::same), 4, 1, 1);
  expect_window(slide(8, 3, 2, Padding::same), 4, 0, 1);
  expect_window(slide(2, 5, 1, Padding::same), 2, 2, 2);
}

TEST(Window, SamePadsNothingWhereStridesSkipElements) {
  expect_window(slide(8, 1, 3, Padding::same), 3, 0, 0);
}

TEST(Window, CausalPadsBeforeTheFirstElementOnly) {
  expect_window(slide(6, 3, 1, Padding::causal), 6, 2, 0);
  expect_window(slide(8, 4, 3, Padding::causal), 3, 3, 0);
  expect_window(slide(5, dilated_size(3, 4), 1, Padding::causal), 5, 8, 0);
}

TEST(Window, HoldsTheLargestNumbersOfALayer) {
  const std::int64_t large = (std::int64_t{1} << 31) - 1;
  expect_window(slide(large, large, large, Padding::valid), 1, 0, 0);
  expect_window(slide(large, large, 1, Padding::same), large, large / 2, large / 2);
  expect_window(slide(1, large, large, Padding::same), 1, large / 2, large / 2);
}

TEST(Padding, HasTheNamesOfKeras) {
  EXPECT_EQ(padding_from_name("same"), Padding::same);
  EXPECT_EQ(padding_from_name(name(Padding::valid)), Padding::valid);
  EXPECT_THROW(padding_from_name("SAME"), Error);
}

}  // namespace
}  // namespace holdfast::compute
