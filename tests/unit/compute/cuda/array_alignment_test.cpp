#include "compute/cuda/runtime/array_alignment.h"

#include <gtest/gtest.h>

namespace holdfast::compute {
namespace {

TEST(ArrayAlignment, IsThatOfEveryRow) {
  EXPECT_EQ(alignment_of_rows(1), 4U);
  EXPECT_EQ(alignment_of_rows(13), 4U);
  EXPECT_EQ(alignment_of_rows(10), 8U);
  EXPECT_EQ(alignment_of_rows(300), 16U);
  EXPECT_EQ(alignment_of_rows(8000), 16U);
}

TEST(ArrayAlignment, RoundsUpToBlocksOfTheDevicesMemory) {
  EXPECT_EQ(round_to_block(0), 0U);
  EXPECT_EQ(round_to_block(1), 256U);
  EXPECT_EQ(round_to_block(256), 256U);
  EXPECT_EQ(round_to_block(257), 512U);
}

}  // namespace
}  // namespace holdfast::compute
