// Widths of UTF-8 text in columns, for the progress line: a line that is one column too wide wraps, and
// the next one no longer replaces it. The text may contain bytes that are not
// UTF-8. So it is decoded one character at a time, and each bad byte counts as the '?' that replaces it.

#include "holdfast/base/terminal.h"

#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <cwchar>

#include <sys/ioctl.h>
#include <unistd.h>

namespace holdfast {
namespace {

constexpr int kUsualColumns = 80;

struct Character {
  std::string_view bytes;
  int columns = 0;  // -1: not a character that can be shown
};

// The length of a character, from its first byte; 0 for a byte that begins no character.
std::size_t utf8_length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

// The number of the character that `bytes` are; negative when they are not well-formed.
std::int32_t code_point(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes.front());
  if (bytes.size() == 1) return first;
  std::int32_t value = first & (0xFF >> (bytes.size() + 1));
  for (const char byte : bytes.substr(1)) {
    if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) return -1;
    value = value << 6 | (static_cast<unsigned char>(byte) & 0x3F);
  }
  constexpr std::int32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xD800 && value <= 0xDFFF;
  return value < kLeast[bytes.size()] || value > 0x10FFFF || is_surrogate ? -1 : value;
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
  const std::size_t length = utf8_length(static_cast<unsigned char>(text.front()));
  if (length == 0 || length > text.size()) return {text.substr(0, 1), -1};
  const std::string_view bytes = text.substr(0, length);
  const std::int32_t character = code_point(bytes);
  return character < 0 ? Character{text.substr(0, 1), -1} : Character{bytes, width_of(character)};
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
    columns += next.columns < 0 ? 1 : next.columns;
    text.remove_prefix(next.bytes.size());
  }
  return columns;
}

std::string fit_to_columns(std::string_view text, int columns) {
  std::string fitting;
  while (!text.empty()) {
    const Character next = first_of(text);
    columns -= next.columns < 0 ? 1 : next.columns;
    if (columns < 0) break;
    if (next.columns < 0) {
      fitting += '?';
    } else {
      fitting += next.bytes;
    }
    text.remove_prefix(next.bytes.size());
  }
  return fitting;
}

}  // namespace holdfast
