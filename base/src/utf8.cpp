#include "holdfast/base/utf8.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "utf8_character.h"

namespace holdfast {
namespace {

// The first byte of a sequence says how many bytes follow, and bounds the second one. All further bytes
// are 80 to BF.
struct Lead {
  std::uint8_t first;
  std::uint8_t last;
  std::size_t following;
  std::uint8_t lowest;   // of the second byte
  std::uint8_t highest;  // of the second byte
};

// The Unicode Standard, table 3-7. The bounds of the second byte leave out overlong forms (E0, F0),
// surrogates (ED) and numbers above U+10FFFF (F4). U+0000 is left out too, because C functions
// would take it for the end.
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

std::size_t bytes_of_character(std::string_view text) {
  if (text.empty()) return 0;
  const auto* lead = std::find_if(std::begin(kLeads), std::end(kLeads),
                                  [&](const Lead& entry) { return lies_between(text[0], entry.first, entry.last); });
  if (lead == std::end(kLeads) || text.size() <= lead->following) return 0;
  if (lead->following > 0 && !lies_between(text[1], lead->lowest, lead->highest)) return 0;
  for (std::size_t i = 2; i <= lead->following; ++i) {
    if (!lies_between(text[i], 0x80, 0xBF)) return 0;
  }
  return 1 + lead->following;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = bytes_of_character(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace holdfast
