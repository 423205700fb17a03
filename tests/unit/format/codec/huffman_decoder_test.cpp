// The decoder against a plain encoder, and against streams that a damaged or hostile file could contain.

#include "codec/huffman_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/data/random_data.h"

namespace holdfast::format {
namespace {

// A stream made from code words, one character per bit, after the mark of the end. It is read from the last
// bit to the first.
std::vector<std::byte> stream_of(const std::string& bits) {
  const std::string marked = "1" + bits;
  std::vector<std::byte> bytes((marked.size() + 7) / 8);
  for (std::size_t i = 0; i < marked.size(); ++i) {
    const std::size_t place = marked.size() - 1 - i;
    if (marked[i] == '1') bytes[place / 8] |= static_cast<std::byte>(1U << place % 8);
  }
  return bytes;
}

std::string word_of(const HuffmanCode& code, std::byte byte) {
  const auto symbol = std::to_integer<std::size_t>(byte);
  std::string word;
  for (unsigned bit = code.bits[symbol]; bit-- > 0;) word += (code.words[symbol] >> bit & 1) != 0 ? '1' : '0';
  return word;
}

// Writes four streams in the slow and plain way.
std::vector<std::byte> streams_of(std::span<const std::byte> content, const HuffmanCode& code,
                                  const std::string& after_the_last = "") {
  const std::size_t part = (content.size() + 3) / 4;
  std::vector<std::byte> sizes;
  std::vector<std::byte> streams;
  for (std::size_t s = 0; s < 4; ++s) {
    std::string bits;
    for (std::size_t i = s * part; i < std::min((s + 1) * part, content.size()); ++i) bits += word_of(code, content[i]);
    if (s == 3) bits += after_the_last;
    const std::vector<std::byte> stream = stream_of(bits);
    sizes.push_back(static_cast<std::byte>(stream.size()));
    sizes.push_back(static_cast<std::byte>(stream.size() >> 8));
    streams.insert(streams.end(), stream.begin(), stream.end());
  }
  streams.insert(streams.begin(), sizes.begin(), sizes.begin() + 6);
  return streams;
}

DecodeTable table_of(const HuffmanCode& code) {
  DecodeTable table;
  table.fill(code.bits);
  return table;
}

// Random bytes with the frequencies of `counts`.
std::vector<std::byte> draw(const ByteCounts& counts, std::size_t count) {
  return weighted_bytes(count, std::vector<double>(counts.begin(), counts.end()), 0, 3);
}

ByteCounts steep(unsigned symbols, double base) {
  ByteCounts counts{};
  double count = 1e8;
  for (unsigned i = 0; i < symbols; ++i, count /= base) counts[255 - 3 * i] = 1 + static_cast<std::uint32_t>(count);
  return counts;
}

TEST(DecodeStreams, GivesWhatWasCoded) {
  for (const double base : {1.0, 1.1, 1.6, 2.0, 4.0, 40.0}) {
    for (const unsigned symbols : {2U, 3U, 5U, 30U, 85U}) {
      const ByteCounts counts = steep(symbols, base);
      const HuffmanCode code = huffman_code(counts);
      const DecodeTable table = table_of(code);
      for (const std::size_t size : {4U, 9U, 63U, 150U, 333U, 1000U, 20'001U}) {
        const std::vector<std::byte> content = draw(counts, size);
        // Nothing is written outside of it.
        std::vector<std::byte> out(size + 16, std::byte{0xEE});

        ASSERT_TRUE(decode_streams(streams_of(content, code), table, std::span(out).subspan(8, size)));
        EXPECT_TRUE(std::equal(content.begin(), content.end(), out.begin() + 8)) << symbols << " " << base;
        EXPECT_EQ(std::count(out.begin(), out.begin() + 8, std::byte{0xEE}), 8);
        EXPECT_EQ(std::count(out.end() - 8, out.end(), std::byte{0xEE}), 8);
      }
    }
  }
}

TEST(DecodeStreams, RefusesStreamsOfMoreOrFewerBytes) {
  const ByteCounts counts = steep(20, 1.5);
  const HuffmanCode code = huffman_code(counts);
  const DecodeTable table = table_of(code);
  for (const std::size_t size : {400U, 4000U}) {
    const std::vector<std::byte> content = draw(counts, size);
    const std::vector<std::byte> streams = streams_of(content, code);
    std::vector<std::byte> out(size + 4);

    EXPECT_FALSE(decode_streams(streams, table, std::span(out).first(size - 4)));
    EXPECT_FALSE(decode_streams(streams, table, std::span(out).first(size - 1)));
    EXPECT_FALSE(decode_streams(streams, table, std::span(out).first(size + 4)));
    EXPECT_FALSE(decode_streams(streams_of(content, code, "1"), table, std::span(out).first(size)));
  }
}

TEST(DecodeStreams, RefusesSizesBeyondTheirBytes) {
  const ByteCounts counts = steep(20, 1.5);
  const HuffmanCode code = huffman_code(counts);
  const std::vector<std::byte> streams = streams_of(draw(counts, 400), code);
  std::vector<std::byte> out(400);
  for (std::size_t size = 0; size < streams.size(); ++size) {
    EXPECT_FALSE(decode_streams(std::span(streams).first(size), table_of(code), out)) << size;
  }
  for (const std::size_t part : {0U, 1U, 2U}) {
    std::vector<std::byte> changed = streams;
    changed[2 * part] = changed[2 * part + 1] = std::byte{0xFF};
    EXPECT_FALSE(decode_streams(changed, table_of(code), out));
    changed[2 * part] = changed[2 * part + 1] = std::byte{0};
    EXPECT_FALSE(decode_streams(changed, table_of(code), out));
  }
}

}  // namespace
}  // namespace holdfast::format
