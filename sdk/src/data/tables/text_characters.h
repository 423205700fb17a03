#pragma once

// Characters of UTF-8 text.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

// The bytes of the character that a text of UTF-8 begins with.
inline std::size_t bytes_of_first_character(std::string_view text) {
  const auto lead = static_cast<std::uint8_t>(text[0]);
  const std::size_t bytes = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return std::min(bytes, text.size());
}

// "byte 17 (line 2)", both counted from 1.
std::string place_in_text(std::string_view text, std::size_t offset);

// The offset of the first byte that is NUL or not UTF-8.
std::optional<std::size_t> find_bad_character(std::string_view text);

}  // namespace holdfast
