#include "container/chunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace holdfast::format {
namespace {

using Shape = std::vector<std::uint64_t>;

Shape chunk_shape(const Shape& shape, std::size_t element_bytes) {
  return ChunkGrid(shape, element_bytes).chunk_shape();
}

TEST(ChunkGrid, CutsWholeRowsOfAboutOneMebibyte) {
  EXPECT_EQ(chunk_shape({1000}, 4), (Shape{1000}));
  EXPECT_EQ(chunk_shape({262'144}, 4), (Shape{262'144}));
  EXPECT_EQ(chunk_shape({262'145}, 4), (Shape{262'144}));
  EXPECT_EQ(chunk_shape({8000, 4000}, 4), (Shape{65, 4000}));
  EXPECT_EQ(chunk_shape({512, 3, 3, 256}, 4), (Shape{113, 3, 3, 256}));
}

TEST(ChunkGrid, CutsRowsThatAreLargerThanAChunk) {
  EXPECT_EQ(chunk_shape({1, 10'000'000}, 4), (Shape{1, 262'144}));
  EXPECT_EQ(chunk_shape({7, 10'000'000}, 8), (Shape{1, 131'072}));
  EXPECT_EQ(chunk_shape({16, 3, 1024, 1024}, 4), (Shape{1, 1, 256, 1024}));
}

// Every byte belongs to one piece, the pieces follow each other, and each begins at the element that its offset
// gives.
TEST(ChunkGrid, CoversTheArrayInOrder) {
  for (const Shape& shape : {Shape{5}, Shape{1'500'000}, Shape{1000, 333}, Shape{3, 131'073}, Shape{2, 3, 5, 70'001},
                             Shape{1, 2, 1, 600'000, 1, 3}, Shape{3, 1, 1 << 19}}) {
    const ChunkGrid grid(shape, 2);
    std::size_t covered = 0;
    for (std::uint64_t index = 0; index < grid.count(); ++index) {
      const ChunkGrid::Piece piece = grid.piece(index);
      std::uint64_t element = 0;
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        element = element * shape[axis] + piece.offset[axis];
        ASSERT_EQ(piece.offset[axis] % grid.chunk_shape()[axis], 0U);
      }
      ASSERT_EQ(piece.first_byte, 2 * element);
      ASSERT_EQ(piece.first_byte, covered);
      ASSERT_LE(piece.bytes, grid.chunk_bytes());
      covered += piece.bytes;
    }
    EXPECT_EQ(covered, std::accumulate(shape.begin(), shape.end(), std::size_t{2}, std::multiplies<>()));
    EXPECT_LE(grid.chunk_bytes(), kMaxChunkBytes);
  }
}

}  // namespace
}  // namespace holdfast::format
