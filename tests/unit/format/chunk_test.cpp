#include "chunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "unit/format/support/array_files.h"

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

// Every byte belongs to one piece, pieces follow each other, and each begins at the element that its offset names.
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

class ChunkCodec : public ::testing::Test {
 protected:
  static std::vector<std::byte> content(std::uint64_t bytes) {
    return testing::make_array("content", DType::u8, {bytes}).bytes;
  }

  std::vector<std::byte> encode(std::span<const std::byte> bytes, std::size_t chunk_bytes, std::size_t element_bytes) {
    const auto frame = encoder_.encode(bytes, chunk_bytes, element_bytes);
    return {frame.begin(), frame.end()};
  }

  ChunkEncoder encoder_{1};
  ChunkDecoder decoder_;
};

TEST_F(ChunkCodec, DecodesWhatItEncoded) {
  for (const std::size_t element_bytes : {1, 2, 4, 8}) {
    const std::vector<std::byte> bytes = content(8 * 1001);
    const std::vector<std::byte> frame = encode(bytes, bytes.size(), element_bytes);
    std::vector<std::byte> out(bytes.size());

    ASSERT_TRUE(decoder_.decode(frame, bytes.size(), element_bytes, out));
    EXPECT_TRUE(out == bytes) << element_bytes;
  }
}

TEST_F(ChunkCodec, PadsWithZeros) {
  const std::vector<std::byte> bytes = content(80);
  std::vector<std::byte> padded = bytes;
  padded.resize(200);

  const std::vector<std::byte> frame = encode(bytes, 200, 4);

  EXPECT_TRUE(frame == encode(padded, 200, 4));
  std::vector<std::byte> out(80);
  ASSERT_TRUE(decoder_.decode(frame, 200, 4, out));
  EXPECT_TRUE(out == bytes);
}

TEST_F(ChunkCodec, ShufflesAsHdf5Does) {
  std::vector<std::byte> bytes(12);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const std::vector<std::byte> frame = encode(bytes, 12, 4);

  std::vector<std::byte> shuffled(12);
  ASSERT_EQ(ZSTD_decompress(shuffled.data(), shuffled.size(), frame.data(), frame.size()), 12U);

  const std::vector<int> expected = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(std::to_integer<int>(shuffled[i]), expected[i]) << i;
}

TEST_F(ChunkCodec, RefusesAFrameOfAnotherSize) {
  const std::vector<std::byte> bytes = content(1000);
  const std::vector<std::byte> frame = encode(bytes, 1000, 4);
  std::vector<std::byte> out(500);

  EXPECT_FALSE(decoder_.decode(frame, 999, 1, out));
  EXPECT_FALSE(decoder_.decode(frame, 1004, 4, out));
  EXPECT_FALSE(decoder_.decode(frame, kMaxChunkBytes, 4, out));
}

TEST_F(ChunkCodec, RefusesAFrameThatClaimsTerabytes) {
  // A single-segment frame header with an 8-byte content size of 2^45, and an empty raw block.
  const std::vector<std::uint8_t> frame = {0x28, 0xB5, 0x2F, 0xFD, 0xE0, 0, 0, 0, 0, 0, 0x20, 0, 0, 1, 0, 0};
  std::vector<std::byte> out(100);

  EXPECT_FALSE(decoder_.decode(std::as_bytes(std::span(frame)), 100, 1, out));
}

TEST_F(ChunkCodec, RefusesWhatIsNotExactlyOneFrame) {
  const std::vector<std::byte> bytes = content(1000);
  const std::vector<std::byte> frame = encode(bytes, 1000, 4);
  std::vector<std::byte> out(1000);
  std::vector<std::byte> longer = frame;
  longer.push_back(std::byte{0});
  std::vector<std::byte> twice = frame;
  twice.insert(twice.end(), frame.begin(), frame.end());

  EXPECT_FALSE(decoder_.decode({}, 1000, 4, out));
  EXPECT_FALSE(decoder_.decode(longer, 1000, 4, out));
  EXPECT_FALSE(decoder_.decode(twice, 1000, 4, out));
  EXPECT_FALSE(decoder_.decode(bytes, 1000, 4, out));
  for (std::size_t length = 0; length < frame.size(); length += 13) {
    EXPECT_FALSE(decoder_.decode(std::span(frame).first(length), 1000, 4, out)) << length;
  }
}

TEST_F(ChunkCodec, RefusesAFrameWithAnyFlippedByte) {
  const std::vector<std::byte> bytes = content(300);
  std::vector<std::byte> frame = encode(bytes, 300, 4);
  std::vector<std::byte> out(300);
  for (std::size_t i = 0; i < frame.size(); ++i) {
    frame[i] ^= std::byte{0x10};
    // A change of the header may leave a valid frame of the very same bytes, but never of others.
    EXPECT_TRUE(!decoder_.decode(frame, 300, 4, out) || out == bytes) << i;
    frame[i] ^= std::byte{0x10};
  }
  EXPECT_TRUE(decoder_.decode(frame, 300, 4, out));
}

TEST_F(ChunkCodec, NeverMakesAFrameSmallerThanTheStatedMinimum) {
  for (const std::size_t bytes :
       {std::size_t{4100}, std::size_t{128 * 1024}, std::size_t{128 * 1024 + 8}, kMaxChunkBytes}) {
    const std::vector<std::byte> zeros(bytes);

    EXPECT_GE(encode(zeros, bytes, 4).size(), min_frame_bytes(bytes)) << bytes;
  }
}

}  // namespace
}  // namespace holdfast::format
