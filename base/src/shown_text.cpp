#include "holdfast/base/shown_text.h"

#include <fmt/format.h>

#include <algorithm>

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

struct Beginning {
  std::string text;
  bool is_all = true;
};

// The characters of `text`, escaped where necessary, as far as they fit into `most` bytes.
Beginning beginning_of(std::string_view text, std::size_t most) {
  Beginning result;
  while (!text.empty()) {
    const std::size_t bytes = bytes_of_character(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, bytes));
    const std::string part = bytes == 0 || is_control(character) ? escaped(character) : std::string(character);
    if (result.text.size() + part.size() > most) return {.text = result.text, .is_all = false};
    result.text += part;
    text.remove_prefix(character.size());
  }
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

}  // namespace holdfast
