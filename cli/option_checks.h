#pragma once

// Checks of the values of options. CLI11's own checks print limits that were not meant, such as the largest double, and
// the numbers of enumerators instead of their names.

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "holdfast/base/whole_number.h"
#include "text.h"

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
        const std::optional<Value> number = whole_number<Value>(text);
        if (number && *number >= lowest) return "";
        return fmt::format("{} is not a whole number from {} to {}", text, lowest, std::numeric_limits<Value>::max());
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
        return fmt::format("{} is not one of {}", text, allowed);
      },
      "");
}

// Adds an option whose value is one of these words. --help lists the words, unless type_name() is called again.
template <typename Value, typename Target>
CLI::Option* add_choice(CLI::App& command, const char* option, Target& target, const char* description,
                        const std::vector<std::pair<std::string, Value>>& choices) {
  std::string words;
  for (const auto& [name, value] : choices) words += (words.empty() ? "" : "|") + name;
  return command.add_option(option, target, description)->transform(one_of(choices))->type_name(words);
}

inline std::chrono::milliseconds to_milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// Adds an option with a number of seconds. `Duration` is milliseconds, whose value --help shows as the default, or an
// optional of them.
template <typename Duration>
CLI::Option* add_seconds(CLI::App& command, const char* option, Duration& target, const char* description,
                         const CLI::Validator& range) {
  const auto take = [&target](double seconds) { target = to_milliseconds(seconds); };
  CLI::Option* added = command.add_option_function<double>(option, take, description);
  if constexpr (std::is_same_v<Duration, std::chrono::milliseconds>) {
    added->default_str(describe_number(std::chrono::duration<double>(target).count()));
  }
  return added->check(range)->type_name("SECONDS");
}

// The most memory that a command uses for another program's file, unless --max-memory gives another limit. HDF5's
// parser runs in a sandboxed process with this limit, because a crafted file could ask for any amount.
inline constexpr std::uint64_t kMaxFileMemoryBytes = std::uint64_t{4} << 30;

// The option --max-memory of commands that read other programs' files.
void add_max_memory(CLI::App& command, std::uint64_t& bytes);

}  // namespace holdfast::cli
