#include "holdfast/core/shape.h"

#include <gtest/gtest.h>

#include <limits>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

TEST(Shape, HasOneElementAndNoAxesForAScalar) {
  const Shape scalar;

  EXPECT_EQ(scalar.rank(), 0U);
  EXPECT_EQ(scalar.element_count(), 1);
  EXPECT_EQ(scalar.to_string(), "[]");
}

TEST(Shape, MultipliesItsExtents) {
  const Shape shape{28, 28, 3};

  EXPECT_EQ(shape.rank(), 3U);
  EXPECT_EQ(shape[2], 3);
  EXPECT_EQ(shape.element_count(), 2352);
  EXPECT_EQ(shape.to_string(), "[28, 28, 3]");
}

TEST(Shape, WithAnExtentOfZeroIsEmpty) {
  EXPECT_EQ((Shape{4, 0, 7}.element_count()), 0);
}

TEST(Shape, TakesABatchAxisOnAndOff) {
  const Shape sample{5, 6};

  const Shape batch = sample.with_batch(32);

  EXPECT_EQ(batch, (Shape{32, 5, 6}));
  EXPECT_EQ(batch.without_batch(), sample);
  EXPECT_EQ(Shape{}.with_batch(3), Shape{3});
}

TEST(Shape, DiffersFromAnotherOfTheSameElementCount) {
  EXPECT_NE((Shape{2, 6}), (Shape{3, 4}));
  EXPECT_NE(Shape{}, Shape{1});
}

TEST(Shape, RefusesANegativeExtent) {
  try {
    const Shape shape{3, -1};
    FAIL() << "made the shape " << shape.to_string();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  }
}

TEST(Shape, CountsUpTo63BitsAndNoFurther) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

  EXPECT_EQ(Shape{kMost}.element_count(), kMost);
  EXPECT_THROW((Shape{kMost, 2}), Error);
  EXPECT_THROW((Shape{std::int64_t{1} << 32, std::int64_t{1} << 31}), Error);
  EXPECT_THROW(Shape{kMost}.with_batch(2), Error);
}

TEST(ShapeDeathTest, AssertsThatAnAxisExists) {
  EXPECT_DEATH(static_cast<void>(Shape{2}[1]), "axis < extents_.size");
  EXPECT_DEATH(static_cast<void>(Shape{}.without_batch()), "extents_.empty");
}

}  // namespace
}  // namespace holdfast
