// A text is escaped character by character, so that no limit cuts an escape or a character in two. However long a
// text is, no more of it is read than can be shown.

#include "holdfast/base/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "utf8_character.h"

namespace holdfast {
namespace {

// Control characters could make a terminal hide or overwrite lines, and the text may come from an
// unknown file.
// The control characters: U+0001 to U+001F, U+007F, and U+0080 to U+009F.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < ' ' || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

// Escaped and not dropped, so that two names that differ in such a byte are shown differently.
std::string escaped(std::string_view bytes) {
  std::string result;
  for (const char c : bytes) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return result;
}

// Enough for most paths, and for the longest name of a file with its folder.
constexpr std::size_t kMostOfPath = 400;
constexpr std::size_t kBeginningOfPath = 100;

// Takes the first character off a text, which is not empty, and returns how it is shown.
std::string take_character(std::string_view& text) {
  const std::size_t bytes = bytes_of_character(text);
  const std::string_view character = text.substr(0, std::max<std::size_t>(1, bytes));
  text.remove_prefix(character.size());
  return bytes == 0 || is_control(character) ? escaped(character) : std::string(character);
}

struct Beginning {
  std::string text;
  bool is_all = true;
};

// The characters of `text`, escaped where necessary, as far as they fit into `most` bytes.
Beginning beginning_of(std::string_view text, std::size_t most) {
  Beginning result;
  while (!text.empty()) {
    const std::string part = take_character(text);
    if (result.text.size() + part.size() > most) return {.text = result.text, .is_all = false};
    result.text += part;
  }
  return result;
}

// The same from the other end.
std::string end_of(std::string_view text, std::size_t most) {
  // No byte is shown as less than one, so that no more than these can fit.
  text.remove_prefix(text.size() - std::min(text.size(), most));
  // The rest of a character that was cut. Three bytes at most follow its first one.
  for (int i = 0; i < 3 && !text.empty() && (static_cast<unsigned char>(text[0]) & 0xC0) == 0x80; ++i) {
    text.remove_prefix(1);
  }
  std::vector<std::string> parts;
  std::size_t bytes = 0;
  while (!text.empty()) bytes += parts.emplace_back(take_character(text)).size();
  std::size_t first = 0;
  while (bytes > most) bytes -= parts[first++].size();
  std::string result;
  for (; first < parts.size(); ++first) result += parts[first];
  return result;
}

}  // namespace

std::string shown_text(std::string_view text, std::size_t most) {
  const Beginning beginning = beginning_of(text, most);
  return beginning.is_all ? beginning.text : fmt::format("{}... ({} bytes)", beginning.text, text.size());
}

std::string quoted_text(std::string_view text, std::size_t most) {
  const Beginning beginning = beginning_of(text, most);
  return '"' + beginning.text + (beginning.is_all ? "\"" : "...\"");
}

std::string quoted_path(std::string_view path) {
  const Beginning all = beginning_of(path, kMostOfPath);
  if (all.is_all) return '"' + all.text + '"';
  return fmt::format("\"{}...{}\"", beginning_of(path, kBeginningOfPath).text,
                     end_of(path, kMostOfPath - kBeginningOfPath));
}

}  // namespace holdfast
