#include "holdfast/base/shown_text.h"

namespace holdfast {

std::string shown_text(std::string_view text, std::size_t most) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string shown;
  for (const char character : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= ' ' && byte < 0x7F) {
      shown += character;
    } else {
      shown += {'\\', 'x', kHexDigits[byte / 16], kHexDigits[byte % 16]};
    }
  }
  if (text.size() > most) shown += "... (" + std::to_string(text.size()) + " bytes)";
  return shown;
}

}  // namespace holdfast
