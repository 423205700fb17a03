// The code must be complete, within the limit of 11 bits, and as short as possible under that limit.

#include "codec/huffman_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <queue>
#include <random>
#include <vector>

#include "unit/format/support/byte_counts.h"

namespace holdfast::format {
namespace {

using testing::counts_of;

// The sum over all words, in units of the longest word that the format allows: a complete code takes all of
// them.
unsigned room_taken(const HuffmanCode& code) {
  unsigned taken = 0;
  for (const std::uint8_t bits : code.bits) taken += bits == 0 ? 0 : 1U << (kMaxCodeBits - bits);
  return taken;
}

std::uint64_t total_bits(const ByteCounts& counts, const HuffmanCode& code) {
  std::uint64_t bits = 0;
  for (std::size_t byte = 0; byte < counts.size(); ++byte) bits += std::uint64_t{counts[byte]} * code.bits[byte];
  return bits;
}

// The coded size with Huffman's own code, whose words may have any length.
std::uint64_t unlimited_bits(const ByteCounts& counts) {
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> queue;
  for (const std::uint32_t count : counts) {
    if (count > 0) queue.push(count);
  }
  std::uint64_t bits = 0;
  while (queue.size() > 1) {
    const std::uint64_t first = queue.top();
    queue.pop();
    const std::uint64_t both = first + queue.top();
    queue.pop();
    bits += both;
    queue.push(both);
  }
  return bits;
}

TEST(CountBytes, CountsEveryByte) {
  std::vector<std::byte> bytes;
  for (unsigned byte = 0; byte < 256; ++byte) bytes.insert(bytes.end(), byte % 13, static_cast<std::byte>(byte));

  const ByteCounts counts = count_bytes(bytes);

  for (unsigned byte = 0; byte < 256; ++byte) EXPECT_EQ(counts[byte], byte % 13) << byte;
}

TEST(HuffmanCode, GivesShortWordsToWhatOccursOften) {
  const HuffmanCode code = huffman_code(counts_of({1, 0, 100, 20, 5}));

  EXPECT_EQ(code.bits[0], 3);
  EXPECT_EQ(code.bits[1], 0);
  EXPECT_EQ(code.bits[2], 1);
  EXPECT_EQ(code.bits[3], 2);
  EXPECT_EQ(code.bits[4], 3);
  EXPECT_EQ(code.max_bits, 3U);
}

// The example of RFC 8878, section 4.2.1.3, has these lengths and these words.
TEST(HuffmanCode, HasTheWordsOfTheSpecificationsExample) {
  ByteCounts counts = counts_of({8, 4, 2, 0, 1, 1});

  const HuffmanCode code = huffman_code(counts);

  EXPECT_EQ(code.bits[0], 1);
  EXPECT_EQ(code.bits[1], 2);
  EXPECT_EQ(code.bits[2], 3);
  EXPECT_EQ(code.bits[4], 4);
  EXPECT_EQ(code.bits[5], 4);
  EXPECT_EQ(code.words[0], 0b1);
  EXPECT_EQ(code.words[1], 0b01);
  EXPECT_EQ(code.words[2], 0b001);
  EXPECT_EQ(code.words[4], 0b0000);
  EXPECT_EQ(code.words[5], 0b0001);
}

TEST(HuffmanCode, IsOptimalIfNoWordExceedsTheLimit) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    ByteCounts counts{};
    const auto symbols = static_cast<std::size_t>(2 + random() % 255);
    for (std::size_t byte = 0; byte < symbols; ++byte) counts[byte] = static_cast<std::uint32_t>(100 + random() % 400);

    const HuffmanCode code = huffman_code(counts);

    ASSERT_LE(code.max_bits, kMaxCodeBits);
    ASSERT_EQ(room_taken(code), 1U << kMaxCodeBits);
    ASSERT_EQ(total_bits(counts, code), unlimited_bits(counts)) << symbols;
  }
}

TEST(HuffmanCode, StaysWithinTheLimitWhereHuffmansOwnCodeWouldNot) {
  ByteCounts counts{};
  std::uint32_t a = 1;
  std::uint32_t b = 1;
  for (std::size_t byte = 0; byte < 24; ++byte) {
    counts[byte] = a;
    b += a;
    std::swap(a, b);
  }

  const HuffmanCode code = huffman_code(counts);

  EXPECT_EQ(code.max_bits, kMaxCodeBits);
  EXPECT_EQ(room_taken(code), 1U << kMaxCodeBits);
  EXPECT_GE(total_bits(counts, code), unlimited_bits(counts));
  EXPECT_LT(total_bits(counts, code), unlimited_bits(counts) * 101 / 100);
}

}  // namespace
}  // namespace holdfast::format
