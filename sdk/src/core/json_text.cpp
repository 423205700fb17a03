// Texts of numbers are data: a resume compares them, so they must not depend on the locale or the library.

#include "core/json_text.h"

#include <fmt/format.h>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>

#include "holdfast/base/error.h"

namespace holdfast {

// to_chars() and from_chars() do not look at the locale, which an application may have set.
std::string json_number(float value) {
  HOLDFAST_ASSERT(std::isfinite(value));
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  HOLDFAST_ASSERT(error == std::errc());
  return {buffer.data(), end};
}

float float_from_text(std::string_view text) {
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" is not a finite number", text));
  }
  return value;
}

std::string json_string(std::string_view text) {
  // Names may come from a user in any encoding. Bytes that are not UTF-8 are replaced, because dump() would throw.
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool is_deep_json(std::string_view text) {
  constexpr std::size_t kMostLevels = 1000;
  std::size_t level = 0;
  bool is_in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_string) {
      // The character after a backslash never ends the string.
      if (c == '\\') ++i;
      is_in_string = c != '"';
    } else if (c == '"') {
      is_in_string = true;
    } else if (c == '[' || c == '{') {
      if (++level > kMostLevels) return true;
    } else if ((c == ']' || c == '}') && level > 0) {
      --level;
    }
  }
  return false;
}

}  // namespace holdfast
