#include "foreign_hdf5/tree_names.h"

#include <gtest/gtest.h>

#include "holdfast/base/utf8.h"

namespace holdfast::format {
namespace {

TEST(TreeNames, KnowsThePathsThatATreeMayHave) {
  for (const char* path : {"a", "a/b", "a b/\xC3\x9F", "...", "a/.b"}) EXPECT_EQ(problem_of_path(path), "") << path;
  for (const char* path : {"", "/", "/a", "a/", "a//b", ".", "a/..", "\xFF"})
    EXPECT_NE(problem_of_path(path), "") << path;
}

TEST(TreeNames, ShowsTextAsItIs) {
  EXPECT_EQ(printable("\"gr\xC3\xB6\xC3\x9F\x65\" is"), "\"gr\xC3\xB6\xC3\x9F\x65\" is");
}

TEST(TreeNames, ShowsNothingThatATerminalObeys) {
  EXPECT_EQ(printable("\x1B[2J\n\x7F"), "?[2J??");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "??2J");
  EXPECT_EQ(printable("a\x9B \xC3\xB6"), "a? ??");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a?b");
}

TEST(TreeNames, ShowsWholeCharactersOfALongText) {
  std::string text(kMaxPrintableBytes - 1, 'a');
  text += "\xC3\x9F";

  EXPECT_EQ(printable(text), std::string(kMaxPrintableBytes - 1, 'a'));
  EXPECT_TRUE(is_utf8(printable(std::string(5000, '\xE5'))));
}

}  // namespace
}  // namespace holdfast::format
