#include "holdfast/base/terminal.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "support/pseudo_terminal.h"

namespace holdfast {

TEST(Terminal, CountsTheColumnsOfATextAsATerminalDoes) {
  EXPECT_EQ(columns_of(""), 0);
  EXPECT_EQ(columns_of("loss 0.5"), 8);
  EXPECT_EQ(columns_of("gr\xC3\xB6\xC3\x9F"
                       "e"),
            5);                                          // umlaut and sharp s take two bytes each
  EXPECT_EQ(columns_of("e\xCC\x81"), 1);                 // an e and the accent above it
  EXPECT_EQ(columns_of("\xE6\x90\x8D\xE5\xA4\xB1"), 4);  // two ideograms
  EXPECT_EQ(columns_of("\xF0\x9F\x99\x82"), 2);          // a face
}

TEST(Terminal, CutsATextToWholeCharacters) {
  EXPECT_EQ(fit_to_columns("loss", 4), "loss");
  EXPECT_EQ(fit_to_columns("loss", 3), "los");
  EXPECT_EQ(fit_to_columns("loss", 0), "");
  EXPECT_EQ(fit_to_columns("\xC3\xB6\xC3\xB6", 1), "\xC3\xB6");
  EXPECT_EQ(fit_to_columns("\xE6\x90\x8D\xE5\xA4\xB1", 3), "\xE6\x90\x8D");
  EXPECT_EQ(fit_to_columns("e\xCC\x81t", 1), "e\xCC\x81");
}

// A metric may have any name.
TEST(Terminal, ReplacesWhatWouldMoveTheCursorWithAQuestionMark) {
  EXPECT_EQ(fit_to_columns("a\nb\x1b[2J", 80), "a?b?[2J");
  EXPECT_EQ(fit_to_columns("\xC3", 80), "?");                      // the second byte is missing
  EXPECT_EQ(fit_to_columns("\xC0\xAF\xED\xA0\x80", 80), "?????");  // an overlong form, half of a surrogate pair
}

TEST(Terminal, HasAWidthWhereAFileDoesNot) {
  PseudoTerminal terminal(33);
  EXPECT_TRUE(is_terminal(terminal.program_end()));
  EXPECT_EQ(terminal_columns(terminal.program_end()), 33);
  terminal.resize(120);
  EXPECT_EQ(terminal_columns(terminal.program_end()), 120);

  std::FILE* file = std::tmpfile();
  EXPECT_FALSE(is_terminal(::fileno(file)));
  EXPECT_EQ(terminal_columns(::fileno(file)), 80);
  std::fclose(file);
}

}  // namespace holdfast
