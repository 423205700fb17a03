#include "holdfast/base/shown_text.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(ShownText, IsTheTextWhereThatCanBeRead) {
  EXPECT_EQ(shown_text("oneDNN 3.7, avx512 (v4)"), "oneDNN 3.7, avx512 (v4)");
  EXPECT_EQ(shown_text(""), "");
}

TEST(ShownText, CommandsNoTerminalAndEndsNoSentence) {
  EXPECT_EQ(shown_text(std::string_view("a\0b\x1b[2J\xff\n", 8)), "a\\x00b\\x1b[2J\\xff");
}

TEST(ShownText, HasALimit) {
  EXPECT_EQ(shown_text(std::string(5'000'000, 'x'), 3), "xxx... (5000000 bytes)");
}

}  // namespace
}  // namespace holdfast
