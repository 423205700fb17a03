#include "text.h"

#include <gtest/gtest.h>

#include <limits>

namespace holdfast::cli {
namespace {

TEST(Text, ContainsNoTerminalCommands) {
  EXPECT_EQ(printable("a\x1b[2Jb\n\r\x7f"), "a?[2Jb???");
  // U+009B, here in UTF-8, begins a terminal command, too.
  EXPECT_EQ(printable("a\xC2\x9B"
                      "2J"),
            "a?2J");
}

TEST(Text, KeepsItsLetters) {
  EXPECT_EQ(printable("é/日本 x"), "é/日本 x");
  EXPECT_EQ(printable("\xC2\xA0"), "\xC2\xA0");
  EXPECT_EQ(printable("\xC2"), "\xC2");
}

TEST(Text, DescribesShapes) {
  EXPECT_EQ(describe_shape({}), "[]");
  EXPECT_EQ(describe_shape({3, 0, 4}), "[3, 0, 4]");
}

TEST(Text, DescribesNumbers) {
  EXPECT_EQ(describe_number(1.0 / 3), "0.333333");
  EXPECT_EQ(describe_number(1.5e10), "1.5e+10");
  EXPECT_EQ(describe_number(std::numeric_limits<double>::infinity()), "inf");
}

TEST(Text, CountsInEnglish) {
  EXPECT_EQ(describe_count(0, "array"), "0 arrays");
  EXPECT_EQ(describe_count(1, "array"), "1 array");
  EXPECT_EQ(describe_count(2, "array"), "2 arrays");
}

TEST(Text, HasNoRatioForAnUnknownSize) {
  EXPECT_EQ(describe_ratio(119, 100), "1.19");
  EXPECT_EQ(describe_ratio(119, 0), "-");
}

TEST(Text, IsNotCutWithinACharacter) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "abc...");
  EXPECT_EQ(shortened("aéé", 2), "a...");
}

}  // namespace
}  // namespace holdfast::cli
