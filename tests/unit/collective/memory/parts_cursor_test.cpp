#include "collective/memory/parts_cursor.h"

#include <gtest/gtest.h>

#include <string>

namespace holdfast {
namespace {

std::span<std::byte> part_of(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

}  // namespace

TEST(PartsCursor, ReadsPartsAsOneArray) {
  std::string texts[] = {"", "ab", "cdefg", "", "h"};
  std::vector<std::span<std::byte>> parts;
  for (std::string& text : texts) parts.push_back(part_of(text));
  std::string piece(3, '-');
  std::string all;

  PartsCursor cursor(parts);
  for (int turn = 0; turn < 3; ++turn) {
    cursor.copy_to(part_of(piece));
    all += piece;
  }

  EXPECT_EQ(bytes_of(parts), 8U);
  EXPECT_EQ(all.substr(0, 8), "abcdefgh");
}

TEST(PartsCursor, WritesPartsAsOneArray) {
  std::string texts[] = {"..", "", ".", "...."};
  std::vector<std::span<std::byte>> parts;
  for (std::string& text : texts) parts.push_back(part_of(text));
  const std::string pieces[] = {"abc", "def", "ghi"};

  PartsCursor cursor(parts);
  for (const std::string& piece : pieces) cursor.copy_from(std::as_bytes(std::span(piece)));

  EXPECT_EQ(texts[0] + "|" + texts[2] + "|" + texts[3], "ab|c|defg");
}

TEST(PartsCursor, ShowsWhereTheNextBytesLie) {
  std::string texts[] = {"abc", "", "de"};
  std::vector<std::span<std::byte>> parts;
  for (std::string& text : texts) parts.push_back(part_of(text));

  PartsCursor cursor(parts);
  const auto first = cursor.take(2);
  const auto second = cursor.take(2);

  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].data(), part_of(texts[0]).data());
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(second[0].data(), part_of(texts[0]).data() + 2);
  EXPECT_EQ(second[1].data(), part_of(texts[2]).data());
  EXPECT_EQ(bytes_of(cursor.take(10)), 1U);
}

}  // namespace holdfast
