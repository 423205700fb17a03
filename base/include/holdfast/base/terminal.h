#pragma once

// The width of a terminal, and how wide a text is on it. Several processes of a run write to one
// terminal: log lines, and one of them a progress line. Two rules keep lines from running together.
// Each line begins with kClearLine, in the same write(2) as its text. A line that will be replaced
// ends with kLineStart, which leaves the cursor in the first column.

#include <string>
#include <string_view>

namespace holdfast {

// Goes to the first column and clears from there to the end of the screen: also what a terminal that
// became narrower has wrapped onto the next lines.
inline constexpr std::string_view kClearLine = "\r\x1b[J";
// Goes to the first column and clears nothing.
inline constexpr std::string_view kLineStart = "\r";

// Whether `descriptor` is a terminal that obeys kClearLine. A terminal with TERM=dumb does not.
bool is_terminal(int descriptor);

// The width of the terminal in columns; 80 when the terminal does not report it.
int terminal_columns(int descriptor);

// The columns that UTF-8 text takes: a letter takes one, an ideogram two, a combining accent none.
int columns_of(std::string_view text);

// The beginning of the text: as many whole characters as fit into `columns`. Characters that would
// move the cursor, and bytes that are not UTF-8, become '?'.
std::string fit_to_columns(std::string_view text, int columns);

}  // namespace holdfast
