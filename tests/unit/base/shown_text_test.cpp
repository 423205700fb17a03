#include "holdfast/base/shown_text.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(ShownText, KeepsTextThatIsReadable) {
  EXPECT_EQ(shown_text("oneDNN 3.7, avx512 (v4)"), "oneDNN 3.7, avx512 (v4)");
  EXPECT_EQ(shown_text(""), "");
}

TEST(ShownText, EscapesWhatWouldControlATerminalOrEndALine) {
  EXPECT_EQ(shown_text(std::string_view("a\0b\x1b[2J\xff\n", 8)), "a\\x00b\\x1b[2J\\xff");
}

TEST(ShownText, HasALimit) {
  EXPECT_EQ(shown_text(std::string(5'000'000, 'x'), 3), "xxx... (5000000 bytes)");
}

TEST(QuotedText, CutsBetweenCharactersAndEscapesControlCharacters) {
  std::string text;
  for (int i = 0; i < 150; ++i) text += "\xE2\x82\xAC";

  EXPECT_EQ(quoted_text("a\x1b[2J\x7F\xC3\xA9"), "\"a\\x1b[2J\\x7f\xC3\xA9\"");
  EXPECT_EQ(quoted_text("\xC2\x9B"
                        "2J"),
            "\"\\xc2\\x9b2J\"");
  EXPECT_EQ(quoted_text(std::string("a\0b", 3)), "\"a\\x00b\"");
  EXPECT_EQ(quoted_text(text), '"' + text.substr(0, 198) + "...\"");
  EXPECT_EQ(quoted_text(std::string(5'000'000, 'x')).size(), 205U);
  EXPECT_EQ(quoted_text(std::string(200, 'x')), '"' + std::string(200, 'x') + '"');
}

// Names of ZIP members that are not UTF-8 went to the terminal unchanged.
TEST(QuotedText, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(quoted_text("a\xFF\xC3"), "\"a\\xff\\xc3\"");
  EXPECT_EQ(quoted_text("\xE2\x82\xAC\xE2\x82"), "\"\xE2\x82\xAC\\xe2\\x82\"");
}

// Cut like another text, a path lost the name of the file.
TEST(QuotedPath, KeepsBothEnds) {
  std::string euros;
  for (int i = 0; i < 150; ++i) euros += "\xE2\x82\xAC";

  EXPECT_EQ(quoted_path("/data/a\x1b[2J.csv"), R"("/data/a\x1b[2J.csv")");
  EXPECT_EQ(quoted_path(std::string(400, 'x')), '"' + std::string(400, 'x') + '"');
  EXPECT_EQ(quoted_path(std::string(200, 'x') + std::string(201, 'y')),
            '"' + std::string(100, 'x') + "..." + std::string(99, 'x') + std::string(201, 'y') + '"');
  EXPECT_EQ(quoted_path(euros + "/ab.csv"), '"' + euros.substr(0, 99) + "..." + euros.substr(0, 291) + "/ab.csv\"");
  // 25 escapes of four bytes each, and 73.
  EXPECT_EQ(quoted_path(std::string(5'000'000, '\x7F') + "a.csv"),
            '"' + shown_text(std::string(25, '\x7F')) + "..." + shown_text(std::string(73, '\x7F'), 300) + "a.csv\"");
}

}  // namespace
}  // namespace holdfast
