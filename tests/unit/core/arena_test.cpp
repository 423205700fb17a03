#include "holdfast/core/arena.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

ArenaLayout small_layout() {
  ArenaLayout layout;
  layout.add("dense/kernel", {3, 5});
  layout.add("dense/bias", {5});
  layout.add("scale", {});
  return layout;
}

TEST(ArenaLayout, BeginsEachEntryAtACacheLine) {
  const ArenaLayout layout = small_layout();

  ASSERT_EQ(layout.entries().size(), 3U);
  EXPECT_EQ(layout.entries()[0].offset, 0U);
  EXPECT_EQ(layout.entries()[1].offset, 16U);
  EXPECT_EQ(layout.entries()[2].offset, 32U);
  EXPECT_EQ(layout.float_count(), 48U);
  EXPECT_EQ(layout.element_count(), 21U);
}

TEST(ArenaLayout, AddsNoPaddingAfterAFullLine) {
  ArenaLayout layout;

  layout.add("a", {16});
  layout.add("b", {17});

  EXPECT_EQ(layout.entries()[1].offset, 16U);
  EXPECT_EQ(layout.float_count(), 48U);
}

TEST(ArenaLayout, IsEmptyWithoutEntries) {
  const ArenaLayout layout;

  EXPECT_EQ(layout.float_count(), 0U);
  EXPECT_EQ(layout.digest({}), digest({}));
}

TEST(ArenaLayout, RefusesATakenOrEmptyName) {
  ArenaLayout layout = small_layout();

  for (const std::string name : {"scale", ""}) {
    try {
      layout.add(name, {1});
      FAIL() << "took the name \"" << name << "\"";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
  EXPECT_EQ(layout.entries().size(), 3U);
  EXPECT_EQ(layout.float_count(), 48U);
}

TEST(ArenaLayout, ViewsTheElementsOfAnEntryInPlace) {
  const ArenaLayout layout = small_layout();
  std::vector<float> arena(layout.float_count());

  layout.view(std::span(arena), 1)[4] = 9;

  EXPECT_EQ(arena[20], 9.0F);
  EXPECT_EQ(layout.view(std::span<const float>(arena), 1).size(), 5U);
}

TEST(ArenaLayout, DigestsElementsInOrderAndNoPadding) {
  const ArenaLayout layout = small_layout();
  std::vector<float> arena(layout.float_count());
  std::iota(arena.begin(), arena.end(), 1.0F);
  std::vector<float> elements;
  for (std::size_t entry = 0; entry < 3; ++entry) {
    const std::span<const float> view = layout.view(std::span<const float>(arena), entry);
    elements.insert(elements.end(), view.begin(), view.end());
  }

  const Digest before = layout.digest(arena);
  arena[15] = -1;  // padding after the kernel
  const Digest with_other_padding = layout.digest(arena);
  arena[14] = -1;  // the kernel's last element
  const Digest with_other_element = layout.digest(arena);

  EXPECT_EQ(before, digest(std::as_bytes(std::span(elements))));
  EXPECT_EQ(before, with_other_padding);
  EXPECT_NE(before, with_other_element);
}

TEST(ArenaLayoutDeathTest, AssertsThatAnArenaHasItsSize) {
  const ArenaLayout layout = small_layout();
  std::vector<float> arena(layout.float_count() - 1);

  EXPECT_DEATH(static_cast<void>(layout.view(std::span(arena), 0)), "float_count_");
}

}  // namespace
}  // namespace holdfast
