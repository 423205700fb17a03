// Widths of UTF-8 text in columns, for the progress line: a line that is one column too wide wraps, and
// the next one no longer replaces it. The text may contain bytes that are not UTF-8. So it is decoded one character at
// a time, and each bad byte counts as the '?' that replaces it.

#include "holdfast/base/terminal.h"

#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <cwchar>

#include <sys/ioctl.h>
#include <unistd.h>

#include "utf8_character.h"

namespace holdfast {
namespace {

constexpr int kUsualColumns = 80;

struct Character {
  std::string_view bytes;
  std::string_view shown;  // "?" when it cannot be shown
  int columns = 0;
};

// The number of a character of UTF-8: the low bits of its first byte, then six bits of each further byte.
std::int32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first;
  std::int32_t value = first & (0xFF >> (character.size() + 1));
  for (const char byte : character.substr(1)) value = value << 6 | (static_cast<unsigned char>(byte) & 0x3F);
  return value;
}

// The C library knows the widths. It needs a UTF-8 locale, which this thread uses for the call only.
// Without such a locale, a width that is too large is better than one that is too small.
int width_of(std::int32_t character) {
  if (character < 0x80) return character >= 0x20 && character != 0x7F ? 1 : -1;
  static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (utf8 == nullptr) return character < 0xA0 ? -1 : 2;
  const locale_t before = ::uselocale(utf8);
  const int width = ::wcwidth(static_cast<wchar_t>(character));
  ::uselocale(before);
  return width;
}

// The first character of a text that is not empty.
Character first_of(std::string_view text) {
  const std::size_t length = bytes_of_character(text);
  if (length == 0) return {text.substr(0, 1), "?", 1};
  const std::string_view bytes = text.substr(0, length);
  const int width = width_of(code_point(bytes));
  return width < 0 ? Character{bytes, "?", 1} : Character{bytes, bytes, width};
}

}  // namespace

bool is_terminal(int descriptor) {
  if (::isatty(descriptor) != 1) return false;
  // A dumb terminal, such as an editor's shell, shows escape sequences as text.
  const char* kind = std::getenv("TERM");
  return kind == nullptr || std::string_view(kind) != "dumb";
}

int terminal_columns(int descriptor) {
  winsize size{};
  const bool is_known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kUsualColumns;
}

int columns_of(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const Character next = first_of(text);
    columns += next.columns;
    text.remove_prefix(next.bytes.size());
  }
  return columns;
}

std::string fit_to_columns(std::string_view text, int columns) {
  std::string fitting;
  while (!text.empty()) {
    const Character next = first_of(text);
    columns -= next.columns;
    if (columns < 0) break;
    fitting += next.shown;
    text.remove_prefix(next.bytes.size());
  }
  return fitting;
}

}  // namespace holdfast
