#pragma once

// What a terminal shows: its width, and how wide a text is on it. Several processes of a run write to one terminal, a
// progress line and log lines among them. So that no two lines run together, each begins with kClearLine, in the same
// write as its text. A line that will be replaced ends with kLineStart.

#include <string>
#include <string_view>

namespace holdfast {

// To the first column; clears that line and what a terminal that became narrower has wrapped onto the next ones.
inline constexpr std::string_view kClearLine = "\r\x1b[J";
inline constexpr std::string_view kLineStart = "\r";

// True of a terminal that obeys kClearLine: not where the environment has TERM=dumb.
bool is_terminal(int descriptor);

// The width of the terminal in columns; 80 where the terminal does not tell it.
int terminal_columns(int descriptor);

// The columns of a terminal that shows UTF-8: a letter takes one, an ideogram two, a combining accent none.
int columns_of(std::string_view text);

// As many whole characters as fit into `columns`. Characters that would move the cursor, and bytes that are not UTF-8,
// are shown as '?'.
std::string fit_to_columns(std::string_view text, int columns);

}  // namespace holdfast
