// Descriptions are read back, compared with the specification's example, and read from damaged bytes.

#include "codec/huffman_description.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "unit/format/support/byte_counts.h"

namespace holdfast::format {
namespace {

using testing::counts_of;

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// Counts of `symbols` different bytes, scattered, each `base` times as frequent as the next.
HuffmanCode skewed_code(unsigned symbols, double base, unsigned seed) {
  std::array<std::size_t, 256> order;
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  ByteCounts counts{};
  for (unsigned i = 0; i < symbols; ++i) {
    counts[order[i]] = 1 + static_cast<std::uint32_t>(100'000 * std::pow(base, -static_cast<double>(i)));
  }
  return huffman_code(counts);
}

TEST(DescribeCode, WritesTheWeightsOfTheSpecificationsExample) {
  std::array<std::byte, kMaxDescriptionBytes> out{};

  const std::size_t size = describe_code(huffman_code(counts_of({8, 4, 2, 0, 1, 1})), out.data());

  // Five weights of four bits each: 4, 3, 2, 0, 1. The weight of the sixth byte follows from them.
  ASSERT_EQ(size, 4U);
  EXPECT_EQ(std::to_integer<int>(out[0]), 127 + 5);
  EXPECT_EQ(std::to_integer<int>(out[1]), 0x43);
  EXPECT_EQ(std::to_integer<int>(out[2]), 0x20);
  EXPECT_EQ(std::to_integer<int>(out[3]), 0x10);
}

TEST(DescribeCode, CannotDescribeOneLengthForMoreThan128Bytes) {
  ByteCounts counts{};
  counts.fill(1);
  std::array<std::byte, kMaxDescriptionBytes> out{};

  EXPECT_EQ(describe_code(huffman_code(counts), out.data()), 0U);
}

// The inputs reach every way to describe a code, and words of every length.
TEST(ReadDescription, GivesTheLengthsBack) {
  unsigned described = 0;
  unsigned seed = 0;
  for (unsigned symbols = 2; symbols <= 256; ++symbols) {
    for (const double base : {1.0, 1.01, 1.1, 1.5, 3.0}) {
      const HuffmanCode code = skewed_code(symbols, base, ++seed);
      std::array<std::byte, kMaxDescriptionBytes + 1> bytes{};
      const std::size_t size = describe_code(code, bytes.data());
      if (size == 0) continue;
      CodeLengths lengths;

      ASSERT_EQ(read_description(bytes, lengths), size) << symbols << " " << base;
      EXPECT_EQ(lengths, code.bits) << symbols << " " << base;
      ++described;
    }
  }
  EXPECT_GT(described, 1000U);
}

TEST(ReadDescription, RefusesADescriptionThatIsCutOff) {
  for (const unsigned symbols : {3U, 20U, 90U}) {
    std::array<std::byte, kMaxDescriptionBytes> bytes{};
    const std::size_t size = describe_code(skewed_code(symbols, 1.2, symbols), bytes.data());
    CodeLengths lengths;
    for (std::size_t left = 0; left < size; ++left) {
      EXPECT_EQ(read_description(std::span(bytes).first(left), lengths), 0U) << symbols << " " << left;
    }
  }
}

TEST(ReadDescription, RefusesWeightsThatAreNotACompleteCode) {
  CodeLengths lengths;

  EXPECT_EQ(read_description(bytes_of({128, 0x10, 0}), lengths), 2U);
  EXPECT_EQ(read_description(bytes_of({128, 0x00, 0}), lengths), 0U) << "no byte has a word";
  EXPECT_EQ(read_description(bytes_of({129, 0x30, 0}), lengths), 0U) << "the longest words are not a pair";
  EXPECT_EQ(read_description(bytes_of({129, 0x31, 0}), lengths), 0U) << "what is left is not a power of two";
  EXPECT_EQ(read_description(bytes_of({128, 0xC0, 0}), lengths), 0U) << "a word of twelve bits";
  EXPECT_EQ(read_description(bytes_of({131, 0xBB, 0xBB, 0}), lengths), 0U) << "four halves";
}

// Any bytes give a complete code or are refused.
TEST(ReadDescription, GivesACompleteCodeOrNothingForAnyBytes) {
  std::mt19937 random(5);
  unsigned accepted = 0;
  for (unsigned round = 0; round < 20'000; ++round) {
    std::array<std::byte, kMaxDescriptionBytes> bytes{};
    describe_code(skewed_code(3 + round % 40, 1.3, round), bytes.data());
    for (unsigned change = 0; change < 1 + round % 3; ++change) {
      bytes[1 + random() % 30] ^= static_cast<std::byte>(1U << random() % 8);
    }
    CodeLengths lengths;
    if (read_description(bytes, lengths) == 0) continue;
    ++accepted;
    unsigned taken = 0;
    for (const std::uint8_t bits : lengths) {
      ASSERT_LE(bits, kMaxCodeBits);
      taken += bits == 0 ? 0 : 1U << (kMaxCodeBits - bits);
    }
    ASSERT_EQ(taken, 1U << kMaxCodeBits);
  }
  EXPECT_GT(accepted, 1000U);
}

}  // namespace
}  // namespace holdfast::format
