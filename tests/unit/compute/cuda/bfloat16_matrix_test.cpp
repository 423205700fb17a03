#include "compute/cuda/products/bfloat16_matrix.h"

#include <gtest/gtest.h>

namespace holdfast::compute {
namespace {

TEST(Bfloat16Matrix, HasRowsThatBeginAtSixteenBytes) {
  for (std::int64_t columns = 1; columns < 40; ++columns) {
    const Bfloat16Matrix matrix = {.rows = 3, .columns = columns};

    EXPECT_EQ(static_cast<std::size_t>(matrix.row_stride()) * sizeof(Bfloat16) % kWidestAccess, 0U) << columns;
    EXPECT_GE(matrix.row_stride(), columns);
    EXPECT_LT(matrix.row_stride(), columns + Bfloat16Matrix::kGroup);
  }
}

TEST(Bfloat16Matrix, LeavesTheNextOneAligned) {
  EXPECT_EQ((Bfloat16Matrix{.rows = 3, .columns = 5}).bytes(), 256U);
  EXPECT_EQ((Bfloat16Matrix{.rows = 2048, .columns = 300}).bytes(), 2048U * 304 * 2);
  EXPECT_EQ((Bfloat16Matrix{.rows = 8000, .columns = 4000}).bytes(), 64'000'000U);
  EXPECT_EQ(Bfloat16Matrix().bytes(), 0U);
}

}  // namespace
}  // namespace holdfast::compute
