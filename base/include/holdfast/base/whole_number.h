#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace holdfast {

// The whole number of this type that the text is, if it is one: "-1" is refused for an unsigned type, "1e300" and "7.0"
// for every type. Conversions of libraries wrap, cut and round such numbers silently.
template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace holdfast
