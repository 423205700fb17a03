// The digest must be the same on every machine and in every version, since files contain it. So its values are
// compared with another implementation of the definition.

#include "holdfast/base/digest.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

constexpr std::size_t kLeaf = DigestBuilder::kLeafBytes;

// Byte i is 7 i modulo 251, a prime: no two leaves are equal.
std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = static_cast<std::byte>(i * 7 % 251);
  return result;
}

Digest digest_in_pieces(std::span<const std::byte> bytes, std::size_t piece) {
  DigestBuilder builder;
  for (std::size_t offset = 0; offset < bytes.size(); offset += piece) {
    builder.update(bytes.subspan(offset, std::min(piece, bytes.size() - offset)));
  }
  return builder.finish();
}

// Computed by the definition in digest.h with the Python package xxhash 4.1.0 (its XXH3 is xxHash's own C code).
TEST(Digest, HasTheValuesOfItsDefinition) {
  const std::string word = "holdfast";

  EXPECT_EQ(digest({}).hex(), "2c0a8a99dc147d5445c3b49d035665b2");
  EXPECT_EQ(digest(std::as_bytes(std::span(word))).hex(), "2d77ebdec5eb1c4826c0bf4b8ec1bb53");
  EXPECT_EQ(digest(pattern(200'000)).hex(), "129d0d4be3bce11a0f700e6645b584c2");
}

TEST(DigestBuilder, GivesTheSameDigestForPiecesOfAnySize) {
  const std::vector<std::byte> bytes = pattern(3 * kLeaf + 12'345);
  const Digest whole = digest(bytes);

  for (const std::size_t piece : {std::size_t{1'000}, kLeaf - 1, kLeaf, kLeaf + 1, 2 * kLeaf, bytes.size()}) {
    EXPECT_EQ(digest_in_pieces(bytes, piece), whole) << "pieces of " << piece;
  }
  EXPECT_EQ(digest_in_pieces(std::span(bytes).first(300), 1), digest(std::span(bytes).first(300)));
}

TEST(DigestBuilder, IgnoresEmptyPieces) {
  const std::vector<std::byte> bytes = pattern(kLeaf + 1);
  DigestBuilder builder;

  builder.update({});
  builder.update(std::span(bytes).first(10));
  builder.update({});
  builder.update(std::span(bytes).subspan(10));
  builder.update({});

  EXPECT_EQ(builder.finish(), digest(bytes));
}

TEST(DigestBuilder, KeepsItsStateWhenMoved) {
  const std::vector<std::byte> bytes = pattern(100);
  DigestBuilder first;
  first.update(std::span(bytes).first(60));

  DigestBuilder second(std::move(first));
  second.update(std::span(bytes).subspan(60));

  EXPECT_EQ(second.finish(), digest(bytes));
}

TEST(Digest, ChangesWithEveryBit) {
  std::vector<std::byte> bytes = pattern(100);
  std::set<std::string> seen{digest(bytes).hex()};

  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto mask = static_cast<std::byte>(1 << (bit % 8));
    bytes[bit / 8] ^= mask;
    EXPECT_TRUE(seen.insert(digest(bytes).hex()).second) << "bit " << bit;
    bytes[bit / 8] ^= mask;
  }
}

TEST(Digest, ChangesWithABitOfAnyLeaf) {
  std::vector<std::byte> bytes = pattern(2 * kLeaf + 10);
  const Digest whole = digest(bytes);

  for (const std::size_t position : {std::size_t{0}, kLeaf - 1, kLeaf, 2 * kLeaf - 1, 2 * kLeaf, 2 * kLeaf + 9}) {
    bytes[position] ^= std::byte{1};
    EXPECT_NE(digest(bytes), whole) << "byte " << position;
    bytes[position] ^= std::byte{1};
  }
}

TEST(Digest, DependsOnTheLength) {
  const std::vector<std::byte> zeros(2 * kLeaf + 1);
  std::set<std::string> seen;

  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, kLeaf - 1, kLeaf, kLeaf + 1, 2 * kLeaf, 2 * kLeaf + 1}) {
    EXPECT_TRUE(seen.insert(digest(std::span(zeros).first(length)).hex()).second) << length << " bytes";
  }
}

TEST(Digest, DependsOnTheOrderOfLeaves) {
  std::vector<std::byte> bytes = pattern(2 * kLeaf);
  const Digest whole = digest(bytes);

  std::swap_ranges(bytes.begin(), bytes.begin() + kLeaf, bytes.begin() + kLeaf);

  EXPECT_NE(digest(bytes), whole);
}

TEST(Digest, IsReadBackFromItsDigits) {
  const Digest original = digest(pattern(5));

  EXPECT_EQ(Digest::from_hex(original.hex()), original);
}

TEST(Digest, IsReadOnlyFromExactlyItsDigits) {
  const std::string digits = digest(pattern(5)).hex();
  for (const std::string& wrong : {std::string(), digits.substr(1), digits + "0", "g" + digits.substr(1),
                                   "-" + digits.substr(1), digits.substr(1) + " "}) {
    try {
      Digest::from_hex(wrong);
      ADD_FAILURE() << "\"" << wrong << "\" was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

}  // namespace
}  // namespace holdfast
