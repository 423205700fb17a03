// Chunks to frames and back, by zstd and by our own encoder, with damaged and hostile frames.

#include "container/chunk_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

// The parameter is zstd's level; without one, frames contain literals only.
class ChunkCodec : public ::testing::TestWithParam<std::optional<int>> {
 protected:
  static std::vector<std::byte> content(std::uint64_t bytes) {
    return testing::make_array("content", DType::u8, {bytes}).bytes;
  }

  std::vector<std::byte> encode(std::span<const std::byte> bytes, std::size_t chunk_bytes, std::size_t element_bytes) {
    const auto frame = encoder_.encode(bytes, chunk_bytes, element_bytes);
    return {frame.begin(), frame.end()};
  }

  // Expects that every decoder refuses the frame.
  void expect_refused(std::span<const std::byte> frame, std::size_t chunk_bytes, std::size_t element_bytes,
                      std::span<std::byte> out) {
    EXPECT_FALSE(decoder_.decode(frame, chunk_bytes, element_bytes, out)) << frame.size();
    EXPECT_FALSE(trusting_.decode(frame, chunk_bytes, element_bytes, out)) << frame.size();
  }

  ChunkEncoder encoder_{GetParam()};
  ChunkDecoder decoder_;
  ChunkDecoder trusting_{{.skip_checksum = true, .past_caches = true}};
};

TEST_P(ChunkCodec, DecodesWhatItEncoded) {
  for (const std::size_t element_bytes : {1, 2, 4, 8}) {
    const std::vector<std::byte> bytes = content(8 * 1001);
    const std::vector<std::byte> frame = encode(bytes, bytes.size(), element_bytes);
    std::vector<std::byte> out(bytes.size());

    for (ChunkDecoder* decoder : {&decoder_, &trusting_}) {
      std::fill(out.begin(), out.end(), std::byte{0xEE});
      ASSERT_TRUE(decoder->decode(frame, bytes.size(), element_bytes, out));
      EXPECT_TRUE(out == bytes) << element_bytes;
    }
  }
}

TEST_P(ChunkCodec, PadsWithZeros) {
  const std::vector<std::byte> bytes = content(80);
  std::vector<std::byte> padded = bytes;
  padded.resize(200);

  const std::vector<std::byte> frame = encode(bytes, 200, 4);

  EXPECT_TRUE(frame == encode(padded, 200, 4));
  std::vector<std::byte> out(80);
  ASSERT_TRUE(decoder_.decode(frame, 200, 4, out));
  EXPECT_TRUE(out == bytes);
}

TEST_P(ChunkCodec, ShufflesAsHdf5Does) {
  std::vector<std::byte> bytes(12);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  const std::vector<std::byte> frame = encode(bytes, 12, 4);

  std::vector<std::byte> shuffled(12);
  ASSERT_EQ(ZSTD_decompress(shuffled.data(), shuffled.size(), frame.data(), frame.size()), 12U);

  const std::vector<int> expected = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(std::to_integer<int>(shuffled[i]), expected[i]) << i;
}

TEST_P(ChunkCodec, RefusesAFrameOfAnotherSize) {
  const std::vector<std::byte> bytes = content(1000);
  const std::vector<std::byte> frame = encode(bytes, 1000, 4);
  std::vector<std::byte> out(500);

  expect_refused(frame, 999, 1, out);
  expect_refused(frame, 1004, 4, out);
  expect_refused(frame, kMebibyte, 4, out);
}

TEST_P(ChunkCodec, RefusesAFrameThatClaimsTerabytes) {
  // A single-segment frame header with an 8-byte content size of 2^45, and an empty raw block.
  const std::vector<std::uint8_t> frame = {0x28, 0xB5, 0x2F, 0xFD, 0xE0, 0, 0, 0, 0, 0, 0x20, 0, 0, 1, 0, 0};
  std::vector<std::byte> out(100);

  expect_refused(std::as_bytes(std::span(frame)), 100, 1, out);
}

TEST_P(ChunkCodec, RefusesWhatIsNotExactlyOneFrame) {
  const std::vector<std::byte> bytes = content(1000);
  const std::vector<std::byte> frame = encode(bytes, 1000, 4);
  std::vector<std::byte> out(1000);
  std::vector<std::byte> longer = frame;
  longer.push_back(std::byte{0});
  std::vector<std::byte> twice = frame;
  twice.insert(twice.end(), frame.begin(), frame.end());

  expect_refused({}, 1000, 4, out);
  expect_refused(longer, 1000, 4, out);
  expect_refused(twice, 1000, 4, out);
  expect_refused(bytes, 1000, 4, out);
  for (std::size_t length = 0; length < frame.size(); length += 13) {
    expect_refused(std::span(frame).first(length), 1000, 4, out);
  }
}

TEST_P(ChunkCodec, RefusesAFrameWithAnyFlippedByte) {
  const std::vector<std::byte> bytes = content(300);
  std::vector<std::byte> frame = encode(bytes, 300, 4);
  std::vector<std::byte> out(300);
  for (std::size_t i = 0; i < frame.size(); ++i) {
    frame[i] ^= std::byte{0x10};
    // A changed header may still be a valid frame of the same bytes, but never of others.
    EXPECT_TRUE(!decoder_.decode(frame, 300, 4, out) || out == bytes) << i;
    frame[i] ^= std::byte{0x10};
  }
  EXPECT_TRUE(decoder_.decode(frame, 300, 4, out));
}

TEST_P(ChunkCodec, NeverMakesAFrameSmallerThanTheStatedMinimum) {
  for (const std::size_t bytes : {std::size_t{4100}, std::size_t{128 * 1024}, std::size_t{128 * 1024 + 8}, kMebibyte}) {
    const std::vector<std::byte> zeros(bytes);

    EXPECT_GE(encode(zeros, bytes, 4).size(), min_frame_bytes(bytes)) << bytes;
  }
}

TEST_P(ChunkCodec, SkipsTheChecksumWhenToldTo) {
  const std::vector<std::byte> bytes = content(1000);
  std::vector<std::byte> frame = encode(bytes, 1000, 4);
  frame.back() ^= std::byte{1};
  std::vector<std::byte> out(1000);
  ChunkDecoder trusting({.skip_checksum = true});

  EXPECT_FALSE(decoder_.decode(frame, 1000, 4, out));
  EXPECT_TRUE(trusting.decode(frame, 1000, 4, out));
  EXPECT_TRUE(out == bytes);
}

TEST_P(ChunkCodec, DecodesBytesWithoutPadding) {
  const std::vector<std::byte> bytes = content(100'000);
  const std::vector<std::byte> frame = encode(std::span(bytes).first(70'000), 100'000, 1);
  std::vector<std::byte> out(70'000);

  ASSERT_TRUE(decoder_.decode(frame, 100'000, 1, out));
  EXPECT_TRUE(std::equal(out.begin(), out.end(), bytes.begin()));
}

TEST_P(ChunkCodec, GivesTheSameWhateverWasEncodedBefore) {
  const std::vector<std::byte> bytes = content(200'000);
  const std::vector<std::byte> zeros(200'000);
  const std::vector<std::byte> first = encode(bytes, bytes.size(), 2);
  encode(zeros, zeros.size(), 8);
  encode(std::span(bytes).first(64), 4800, 4);

  EXPECT_TRUE(encode(bytes, bytes.size(), 2) == first);
}

INSTANTIATE_TEST_SUITE_P(Literals, ChunkCodec, ::testing::Values(std::nullopt));
INSTANTIATE_TEST_SUITE_P(ZstdLevel, ChunkCodec, ::testing::Values(1, 3, -5));

}  // namespace
}  // namespace holdfast::format
