#pragma once

// Checks of the values of options. CLI11's own checks print limits that were not meant, such as the largest double, and
// the numbers of enumerators instead of their names.

#include <charconv>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace holdfast::cli {

// A finite number of at least `lowest`.
CLI::Validator at_least(double lowest);
// A number from `lowest` to `highest`. NaN is refused.
CLI::Validator between(double lowest, double highest);
// A whole number of at least `lowest`.
CLI::Validator whole_from(std::int64_t lowest);
// A whole number of at least `lowest` that fits into `Value`. CLI11 would turn -1, and numbers that are too large, into
// other numbers.
template <typename Value>
CLI::Validator whole_of(Value lowest) {
  return CLI::Validator(
      [lowest](std::string& text) -> std::string {
        Value number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error == std::errc() && end == text.data() + text.size() && number >= lowest) return "";
        return text + " is not a whole number from " + std::to_string(lowest) + " to " +
               std::to_string(std::numeric_limits<Value>::max());
      },
      "");
}

// A size such as 10MB or 2GiB, which becomes a number of bytes. CLI11's own check accepts -1.
CLI::Validator size_in_bytes();

// One of these words; an error lists them in this order. CLI11's own check would also accept an enumerator's number.
template <typename Value>
CLI::Validator one_of(const std::vector<std::pair<std::string, Value>>& choices) {
  std::string allowed;
  for (const auto& [name, value] : choices) allowed += (allowed.empty() ? "" : ", ") + name;
  return CLI::Validator(
      [choices, allowed](std::string& text) -> std::string {
        for (const auto& [name, value] : choices) {
          if (name != text) continue;
          text = std::to_string(static_cast<int>(value));
          return "";
        }
        return text + " is not one of " + allowed;
      },
      "");
}

}  // namespace holdfast::cli
