// The decoder trusts nothing in an index: the digest shows that it is undamaged, not who wrote it.

#include "container/index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "container/chunk.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;
using testing::thrown_by;

IndexedArray contiguous(const std::string& name, DType dtype, std::vector<std::uint64_t> shape) {
  IndexedArray array;
  array.info.name = name;
  array.info.dtype = dtype;
  array.info.shape = std::move(shape);
  array.info.digest.bytes.fill(7);
  const PieceSizes sizes = piece_sizes(array.info);
  for (std::uint64_t i = 0; i < sizes.count; ++i) {
    array.pieces.push_back({static_cast<std::uint32_t>(i + 1 == sizes.count ? sizes.last_bytes : sizes.bytes), {}});
  }
  return array;
}

IndexedArray compressed(const std::string& name, std::vector<std::uint64_t> shape, std::uint32_t stored_bytes) {
  IndexedArray array;
  array.info.name = name;
  array.info.shape = std::move(shape);
  array.info.storage = Storage::zstd;
  array.pieces.assign(piece_sizes(array.info).count, {stored_bytes, {}});
  return array;
}

class IndexTest : public ::testing::Test {
 protected:
  IndexTest() {
    index_.metadata = contiguous("metadata", DType::u8, {2});
    index_.arrays = {contiguous("a", DType::bf16, {3, 5}), contiguous("b/large", DType::u8, {(1 << 20) + 1}),
                     compressed("c", {1000, 700}, 900'001), contiguous("d", DType::f64, {0, 9}),
                     contiguous("e", DType::i64, {})};
    finish();
  }

  void finish() {
    index_.hdf5_offset = place_pieces(index_);
    index_.hdf5_bytes = 1000;
  }

  Index decode() const {
    const std::vector<std::byte> bytes = encode_index(index_);
    return decode_index("a.h5", bytes, index_.hdf5_offset + index_.hdf5_bytes);
  }

  void expect_refused(const std::string& part) const {
    const auto thrown = thrown_by([&] { decode(); });
    EXPECT_EQ(thrown.code, ErrorCode::invalid_file);
    EXPECT_THAT(thrown.sentence, HasSubstr("a.h5"));
    EXPECT_THAT(thrown.sentence, HasSubstr(part));
  }

  Index index_;
};

TEST_F(IndexTest, IsDecodedToWhatWasEncoded) {
  const Index back = decode();

  EXPECT_EQ(encode_index(back), encode_index(index_));
  ASSERT_EQ(back.arrays.size(), 5U);
  EXPECT_EQ(back.arrays[2].info.storage, Storage::zstd);
  EXPECT_EQ(back.arrays[2].info.shape, (std::vector<std::uint64_t>{1000, 700}));
  EXPECT_EQ(back.arrays[2].info.stored_bytes, 3U * 900'001U);
  EXPECT_EQ(back.arrays[0].info.digest, index_.arrays[0].info.digest);
}

TEST_F(IndexTest, PutsEveryPieceAtAMultipleOf64) {
  EXPECT_EQ(index_.metadata.offset, 4096U);
  EXPECT_EQ(index_.arrays[0].offset, 4096U + 64U);
  EXPECT_EQ(index_.arrays[1].offset, 4096U + 128U);
  EXPECT_EQ(index_.arrays[2].offset, 4096U + 128U + (1U << 20) + 64U);
  EXPECT_EQ(index_.arrays[3].offset, index_.arrays[2].offset + 3U * 900'032U);
}

TEST_F(IndexTest, CutsArraysIntoPiecesOfAMebibyte) {
  const PieceSizes sizes = piece_sizes(index_.arrays[1].info);

  EXPECT_EQ(sizes.count, 2U);
  EXPECT_EQ(sizes.bytes, std::size_t{1} << 20);
  EXPECT_EQ(sizes.last_bytes, 1U);
  EXPECT_EQ(piece_sizes(index_.arrays[3].info).count, 0U);
}

TEST_F(IndexTest, RefusesInvalidNames) {
  index_.arrays[0].info.name = "a//b";
  expect_refused("without a valid name");
  index_.arrays[0].info.name = "\xFF";
  expect_refused("without a valid name");
}

TEST_F(IndexTest, RefusesNamesOutOfOrderAndTwice) {
  std::swap(index_.arrays[0], index_.arrays[4]);
  finish();
  expect_refused("not sorted");
  index_.arrays[0] = index_.arrays[1];
  finish();
  expect_refused("not sorted");
}

TEST_F(IndexTest, RefusesAnArrayCalledMetadata) {
  index_.arrays.push_back(contiguous("metadata", DType::u8, {1}));
  finish();
  expect_refused("gives an array the name of the metadata");
}

TEST_F(IndexTest, RefusesMetadataThatIsNotText) {
  index_.metadata = contiguous("metadata", DType::f32, {2});
  finish();
  expect_refused("has no metadata");
}

TEST_F(IndexTest, RefusesShapesBeyond64Bits) {
  index_.arrays[0].info.shape = {std::uint64_t{1} << 40, std::uint64_t{1} << 40};
  expect_refused("exceeds 64 bits");
}

TEST_F(IndexTest, RefusesShapesThatDoNotFitTheirPieces) {
  index_.arrays[0].info.shape = {std::numeric_limits<std::uint64_t>::max() / 2};
  expect_refused("cuts a into a wrong number of pieces");
  index_.arrays[0].info.shape = {4, 5};
  expect_refused("a piece of a");
}

TEST_F(IndexTest, RefusesFramesTooSmallOrTooLargeForTheirChunk) {
  index_.arrays[2].pieces[1].stored_bytes = 20;
  finish();
  expect_refused("a piece of c");
  index_.arrays[2].pieces[1].stored_bytes = 1U << 30;
  finish();
  expect_refused("a piece of c");
}

TEST_F(IndexTest, RefusesCompressionOfSmallArrays) {
  index_.arrays[0].info.storage = Storage::zstd;
  expect_refused("compresses a, which is too small for that");
}

TEST_F(IndexTest, RefusesOffsetsThatDoNotFollowFromTheSizes) {
  index_.arrays[1].offset += 64;
  expect_refused("wrong offsets");
  finish();
  index_.metadata.offset = 0;
  expect_refused("wrong offsets");
  finish();
  index_.hdf5_offset += 64;
  expect_refused("wrong offsets");
}

TEST_F(IndexTest, RefusesHdf5StructuresOfAnotherLength) {
  const std::vector<std::byte> bytes = encode_index(index_);
  for (const std::uint64_t offset : {index_.hdf5_offset + 999, index_.hdf5_offset - 1, std::uint64_t{0}}) {
    EXPECT_EQ(thrown_by([&] { decode_index("a.h5", bytes, offset); }).code, ErrorCode::invalid_file) << offset;
  }
}

TEST_F(IndexTest, RefusesEveryPrefixAndEveryExtension) {
  std::vector<std::byte> bytes = encode_index(index_);
  const std::uint64_t offset = index_.hdf5_offset + index_.hdf5_bytes;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(thrown_by([&] { decode_index("a.h5", std::span(bytes).first(length), offset); }).code,
              ErrorCode::invalid_file)
        << length;
  }
  bytes.push_back(std::byte{0});
  EXPECT_EQ(thrown_by([&] { decode_index("a.h5", bytes, offset); }).code, ErrorCode::invalid_file);
}

TEST_F(IndexTest, GivesAnErrorOrAnIndexForAnyChangedByte) {
  const std::vector<std::byte> bytes = encode_index(index_);
  for (std::size_t position = 0; position < bytes.size(); ++position) {
    for (const std::byte change : {std::byte{0xFF}, std::byte{0x01}, std::byte{0x80}}) {
      std::vector<std::byte> changed = bytes;
      changed[position] ^= change;
      try {
        EXPECT_EQ(encode_index(decode_index("a.h5", changed, index_.hdf5_offset + index_.hdf5_bytes)), changed);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_file) << position << ": " << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace holdfast::format
