#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace holdfast {

// Of text that is a whole number of this type, and nothing else: "-1" is none of an unsigned type, "1e300" and "7.0"
// are none of any. Conversions of libraries wrap, cut and round such numbers without a word.
template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace holdfast
