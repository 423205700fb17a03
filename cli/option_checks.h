#pragma once

// What the values of options may be. CLI11's own checks name limits that nobody meant, and the numbers of enumerators.

#include <charconv>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace holdfast::cli {

// A number from `lowest` on, and not without end.
CLI::Validator at_least(double lowest);
// A number from `lowest` to `highest`; NaN is refused.
CLI::Validator between(double lowest, double highest);
// A whole number from `lowest` on.
CLI::Validator whole_from(std::int64_t lowest);
// A whole number that fits into `Value`, from `lowest` on. CLI11 turns -1, and numbers that are too large, into other
// numbers.
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

// A size such as 10MB or 2GiB, which becomes a number of bytes. CLI11's own takes -1.
CLI::Validator size_in_bytes();

// One of these words, in this order in the sentence; of an enumerator CLI11 takes the number.
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
        return text + " is none of " + allowed;
      },
      "");
}

}  // namespace holdfast::cli
