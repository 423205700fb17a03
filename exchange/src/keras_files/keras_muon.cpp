// Keras asks whether an expression is found anywhere in the path of a variable, such as "sequential/dense/kernel".
// Layers of nested models have a dot there where Holdfast has "/", so an expression of ours takes both.

#include "keras_files/keras_muon.h"

#include <algorithm>

namespace holdfast::format {
namespace {

constexpr std::string_view kBegin = "(^|/)";
constexpr std::string_view kEnd = "(/|$)";
constexpr std::string_view kSeparator = "[./]";

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '/';
}

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, is_name_character);
}

// As core/name_pattern.h of the SDK, which made sure that the pattern matches something.
// Without recursion: after a mismatch it goes back to the last star, which then takes one character more. The time is
// at most the product of both lengths, whatever the pattern.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t at = 0, place = 0, star = std::string_view::npos, after_star = 0;
  while (place < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      after_star = place;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[place])) {
      ++at;
      ++place;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      place = ++after_star;
    } else {
      return false;
    }
  }
  return std::ranges::all_of(pattern.substr(at), [](char c) { return c == '*'; });
}

// A pattern may name an array or the layer that has it.
bool matches_array(std::string_view pattern, std::string_view array) {
  return matches(pattern, array) || matches(pattern, array.substr(0, array.rfind('/')));
}

bool names_an_embedding(std::string_view array) {
  std::string lower(array);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower.find("embedding") != std::string::npos;
}

// The pattern of an expression that keras_expression() gave.
std::optional<std::string> pattern_of(std::string_view expression) {
  if (!expression.starts_with(kBegin) || !expression.ends_with(kEnd) ||
      expression.size() < kBegin.size() + kEnd.size()) {
    return std::nullopt;
  }
  std::string pattern(expression.substr(kBegin.size(), expression.size() - kBegin.size() - kEnd.size()));
  for (std::size_t at = pattern.find(kSeparator); at != std::string::npos; at = pattern.find(kSeparator, at)) {
    pattern.replace(at, kSeparator.size(), "/");
  }
  return is_plain(pattern) ? std::optional(pattern) : std::nullopt;
}

std::string with_slashes(std::string_view array) {
  std::string result(array);
  std::ranges::replace(result, '.', '/');
  return result;
}

}  // namespace

bool is_for_adam(const Json& options, std::string_view array, std::span<const std::uint64_t> shape) {
  // Muon orthogonalises matrices. All other arrays are updated by Adam.
  if (shape.size() != 2) return true;
  if (flag_member(options, "exclude_embeddings", true) && names_an_embedding(array)) return true;
  const Json& patterns = member(options, "adam_arrays");
  return patterns.is_array() && std::ranges::any_of(patterns, [&](const Json& pattern) {
           return pattern.is_string() && matches_array(pattern.get_ref<const std::string&>(), array);
         });
}

std::optional<bool> is_for_adam_in_keras(const Json& options, std::string_view array,
                                         std::span<const std::uint64_t> shape) {
  if (shape.size() != 2) return true;
  if (flag_member(options, "exclude_embeddings", true) && names_an_embedding(array)) return true;
  const Json& expressions = member(options, "exclude_layers");
  if (!expressions.is_array()) return false;
  for (const Json& expression : expressions) {
    if (!expression.is_string()) return std::nullopt;
    const auto& text = expression.get_ref<const std::string&>();
    // Two kinds of expressions are understood. Any other one would have to be run, and those of strangers are not.
    if (const auto pattern = pattern_of(text)) {
      if (matches_array(*pattern, with_slashes(array))) return true;
    } else if (!is_plain(text)) {
      return std::nullopt;
    } else if (array.find(text) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

std::optional<std::string> keras_expression(std::string_view pattern) {
  if (!is_plain(pattern)) return std::nullopt;
  std::string expression(kBegin);
  for (const char c : pattern) {
    // The layer may be one of a nested model, whose path has a dot there in Keras.
    if (c == '/') {
      expression += kSeparator;
    } else {
      expression += c;
    }
  }
  return expression + std::string(kEnd);
}

}  // namespace holdfast::format
