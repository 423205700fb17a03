#pragma once

// What the values of options may be. CLI11's own checks name limits that nobody meant, and the numbers of enumerators.

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace holdfast::cli {

// A number from `lowest` on, and not without end.
CLI::Validator at_least(double lowest);
// A whole number from `lowest` on.
CLI::Validator whole_from(std::int64_t lowest);

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
