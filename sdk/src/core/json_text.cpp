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

}  // namespace holdfast
