#pragma once

// Reads whole numbers from text strictly: options, environment variables, fields of files.
//
//   const std::optional<int> threads = whole_number<int>(text);
//   if (!threads) throw Error(ErrorCode::invalid_argument, "...");

#include <charconv>
#include <optional>
#include <string_view>

namespace holdfast {

// The whole number that all of `text` is; empty for any other text and for a number that does not fit
// the type. "-1" is refused for an unsigned type; "1e300", "7.0" and " 7" for every type. The standard
// library's other conversions wrap, cut and round such numbers silently.
template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace holdfast
