// XXH3 over words of arrays, compared with the digests of base/digest.h.

#include "compute/arithmetic/xxh3.h"

#include <gtest/gtest.h>

#include <vector>

#include "compute/arithmetic/piece_words.h"
#include "holdfast/core/random.h"

namespace holdfast::compute {
namespace {

constexpr std::size_t kLeafWords = DigestBuilder::kLeafBytes / sizeof(std::uint32_t);

std::vector<std::uint32_t> random_words(std::size_t count) {
  Random random(1, Purpose::user, 0, 0);
  std::vector<std::uint32_t> words(count);
  for (std::uint32_t& word : words) word = random.next_u32();
  return words;
}

// The sequence of `pieces` begins with the leaf.
Digest hash_of(const std::vector<Piece>& pieces, std::uint64_t begin, std::uint32_t bytes) {
  const std::uint32_t first = piece_of(pieces.data(), static_cast<std::uint32_t>(pieces.size()), begin);
  const PieceWords words(pieces.data(), first, begin);
  if (bytes <= xxh3::kLargestShort) return digest_of(xxh3::short_hash(words, bytes));
  xxh3::AllLanes lanes;
  return digest_of(xxh3::long_hash(lanes, words, bytes));
}

Digest hash_of(std::span<const std::uint32_t> words) {
  const auto bytes = static_cast<std::uint32_t>(words.size_bytes());
  return hash_of({{words.data(), 0, bytes}}, 0, bytes);
}

void expect_library_hash(std::span<const std::uint32_t> words) {
  EXPECT_EQ(hash_of(words).hex(), digest_leaf(std::as_bytes(words)).hex()) << words.size_bytes() << " bytes";
}

// All kinds of inputs of the specification: empty, up to 8, 16, 128 and 240 bytes, and longer, with and without whole
// blocks of 1024 bytes.
TEST(Xxh3, IsThatOfXxhashForEachLengthOfWholeWords) {
  const std::vector<std::uint32_t> words = random_words(1100);

  for (std::size_t count = 0; count <= words.size(); ++count) expect_library_hash(std::span(words).first(count));
}

TEST(Xxh3, IsThatOfXxhashForLeaves) {
  const std::vector<std::uint32_t> words = random_words(kLeafWords);

  for (std::size_t missing : {0, 1, 2, 3, 15, 16, 17, 255, 256, 257}) {
    expect_library_hash(std::span(words).first(kLeafWords - missing));
  }
}

// Arrays begin with zeros, so mixing words with the secret must also work for zeros.
TEST(Xxh3, IsThatOfXxhashForZerosAndOnes) {
  expect_library_hash(std::vector<std::uint32_t>(kLeafWords));
  expect_library_hash(std::vector<std::uint32_t>(kLeafWords, 0xffffffff));
}

// Arrays of the given lengths in words. `words` has their contents, one after another.
std::vector<Piece> pieces_of(const std::vector<std::uint32_t>& words, const std::vector<std::size_t>& lengths) {
  std::vector<Piece> pieces;
  std::size_t begin = 0;
  for (const std::size_t length : lengths) {
    const std::size_t end = begin + length;
    pieces.push_back({words.data() + begin, begin * sizeof(std::uint32_t), end * sizeof(std::uint32_t)});
    begin = end;
  }
  return pieces;
}

std::vector<Digest> leaves_of(const std::vector<Piece>& pieces) {
  std::vector<Digest> leaves;
  const std::uint64_t bytes = pieces.back().end;
  for (std::uint64_t begin = 0; begin < bytes; begin += DigestBuilder::kLeafBytes) {
    const auto leaf = std::min<std::uint64_t>(bytes - begin, DigestBuilder::kLeafBytes);
    leaves.push_back(hash_of(pieces, begin, static_cast<std::uint32_t>(leaf)));
  }
  return leaves;
}

TEST(PieceWords, ReadLeavesThatLieInSeveralArrays) {
  const std::vector<std::vector<std::size_t>> cases = {
      {1},
      {kLeafWords},
      {1, 1, 1, kLeafWords},
      {kLeafWords - 1, 2, kLeafWords},
      {kLeafWords, kLeafWords, 1},
      {3, 5 * kLeafWords + 7, 1, 1, 60},
      {kLeafWords / 2, kLeafWords / 2, 17, 16, 15, 2 * kLeafWords},
      std::vector<std::size_t>(3000, 31),
  };
  for (const std::vector<std::size_t>& lengths : cases) {
    std::size_t total = 0;
    for (const std::size_t length : lengths) total += length;
    const std::vector<std::uint32_t> words = random_words(total);

    const std::vector<Digest> leaves = leaves_of(pieces_of(words, lengths));

    EXPECT_EQ(digest_of_leaves(leaves, 4 * total).hex(), digest(std::as_bytes(std::span(words))).hex())
        << lengths.size() << " arrays of " << total << " words";
  }
}

// The last stripe of a leaf begins before the words that were read last.
TEST(PieceWords, GoBackToAnEarlierArray) {
  const std::vector<std::uint32_t> words = random_words(10);
  const std::vector<Piece> pieces = pieces_of(words, {2, 1, 3, 4});
  const PieceWords read(pieces.data(), 0, 0);

  for (const std::uint32_t word : {9U, 0U, 5U, 2U, 8U}) EXPECT_EQ(read.read32(4 * word), words[word]);
  EXPECT_EQ(read.read64(4), words[1] | static_cast<std::uint64_t>(words[2]) << 32);
}

TEST(PieceOf, FindsTheArrayOfEachWord) {
  const std::vector<std::uint32_t> words = random_words(60);
  for (std::size_t count = 1; count <= 9; ++count) {
    std::vector<std::size_t> lengths;
    for (std::size_t i = 0; i < count; ++i) lengths.push_back(1 + i % 3);
    const std::vector<Piece> pieces = pieces_of(words, lengths);

    for (std::uint32_t expected = 0; expected < count; ++expected) {
      for (std::uint64_t at = pieces[expected].begin; at < pieces[expected].end; at += 4) {
        EXPECT_EQ(piece_of(pieces.data(), static_cast<std::uint32_t>(count), at), expected);
      }
    }
  }
}

}  // namespace
}  // namespace holdfast::compute
