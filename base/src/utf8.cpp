#include "holdfast/base/utf8.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace holdfast {
namespace {

// A sequence's first byte says how many follow, and bounds the first of them; the others are 80 to BF.
struct Lead {
  std::uint8_t first;
  std::uint8_t last;
  std::size_t following;
  std::uint8_t lowest;   // of the second byte
  std::uint8_t highest;  // of the second byte
};

// The Unicode Standard, table 3-7.
constexpr Lead kLeads[] = {
    {0x01, 0x7F, 0, 0x80, 0xBF}, {0xC2, 0xDF, 1, 0x80, 0xBF}, {0xE0, 0xE0, 2, 0xA0, 0xBF},
    {0xE1, 0xEC, 2, 0x80, 0xBF}, {0xED, 0xED, 2, 0x80, 0x9F}, {0xEE, 0xEF, 2, 0x80, 0xBF},
    {0xF0, 0xF0, 3, 0x90, 0xBF}, {0xF1, 0xF3, 3, 0x80, 0xBF}, {0xF4, 0xF4, 3, 0x80, 0x8F},
};

bool lies_between(char byte, std::uint8_t lowest, std::uint8_t highest) {
  const auto value = static_cast<std::uint8_t>(byte);
  return value >= lowest && value <= highest;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto* lead = std::find_if(std::begin(kLeads), std::end(kLeads),
                                    [&](const Lead& entry) { return lies_between(text[0], entry.first, entry.last); });
    if (lead == std::end(kLeads) || text.size() <= lead->following) return false;
    if (lead->following > 0 && !lies_between(text[1], lead->lowest, lead->highest)) return false;
    for (std::size_t i = 2; i <= lead->following; ++i) {
      if (!lies_between(text[i], 0x80, 0xBF)) return false;
    }
    text.remove_prefix(1 + lead->following);
  }
  return true;
}

namespace {

// The length of the character that `text` begins with; 0 where that is not UTF-8. U+0000 counts as not UTF-8.
std::size_t bytes_of_character(std::string_view text) {
  for (std::size_t bytes = 1; bytes <= std::min<std::size_t>(4, text.size()); ++bytes) {
    if (is_utf8(text.substr(0, bytes))) return bytes;
  }
  return 0;
}

// U+0001 to U+001F, U+007F, and U+0080 to U+009F.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < ' ' || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

std::string escaped(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result;
  for (const char c : bytes) {
    const auto value = static_cast<unsigned char>(c);
    result += {'\\', 'x', kDigits[value / 16U], kDigits[value % 16U]};
  }
  return result;
}

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string result;
  while (!text.empty()) {
    const std::size_t bytes = bytes_of_character(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, bytes));
    const std::string part = bytes == 0 || is_control(character) ? escaped(character) : std::string(character);
    if (result.size() + part.size() > kMost) return '"' + result + "...\"";
    result += part;
    text.remove_prefix(character.size());
  }
  return '"' + result + '"';
}

}  // namespace holdfast
