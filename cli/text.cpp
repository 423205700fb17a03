// Texts of unknown files reach a terminal through printable(), which leaves no control characters. Otherwise a name in
// a file could change the colours, the title or the content of the user's terminal.

#include "text.h"

#include <fmt/format.h>

namespace holdfast::cli {
namespace {

// Some terminals obey U+009B like the escape sequence that begins with ESC.
// The characters U+0080 to U+009F in UTF-8.
bool is_c1_control(std::string_view text, std::size_t at) {
  return text[at] == '\xC2' && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0x80 &&
         static_cast<unsigned char>(text[at + 1]) < 0xA0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (is_c1_control(text, at)) {
      result += '?';
      ++at;
    } else {
      result += c < ' ' || c == 0x7F ? '?' : text[at];
    }
  }
  return result;
}

std::string describe_shape(const std::vector<std::uint64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string describe_number(double value) {
  return fmt::format("{:.6g}", value);
}

std::string describe_count(std::int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string describe_ratio(std::uint64_t bytes, std::uint64_t stored_bytes) {
  if (stored_bytes == 0) return "-";
  return fmt::format("{:.2f}", static_cast<double>(bytes) / static_cast<double>(stored_bytes));
}

std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t bytes = most;
  // Do not cut within a character.
  while (bytes > 0 && (text[bytes] & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes) + "...";
}

std::string joined(const std::vector<std::string>& parts, const std::string& separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

}  // namespace holdfast::cli
