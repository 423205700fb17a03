// JSON from a Keras file is scanned before it is parsed. The JSON library copies and prints by recursion, so deep
// nesting would overflow the stack. Python's json module also writes NaN and Infinity, which are not JSON: they
// become null.

#include "keras_files/keras_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

// The JSON library copies and prints by recursion. One model inside another takes four levels.
constexpr std::size_t kMaxDepth = 1000;

struct Scan {
  std::size_t depth = 0;
  std::vector<std::size_t> numbers;  // positions of NaN and Infinity, which are not JSON
};

// Finds nesting and special numbers in one pass, and skips strings, where neither counts.
Scan scan(std::string_view text) {
  Scan result;
  std::size_t depth = 0;
  bool is_in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_string) {
      if (c == '\\') ++i;
      if (c == '"') is_in_string = false;
    } else if (c == '"') {
      is_in_string = true;
    } else if (c == '{' || c == '[') {
      result.depth = std::max(result.depth, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    } else if (text.substr(i).starts_with("NaN") || text.substr(i).starts_with("Infinity")) {
      // Outside of strings no word of JSON begins with either letter, so nothing else can be meant.
      result.numbers.push_back(i);
    }
  }
  return result;
}

// Returns the text with null in place of each number.
std::string without_special_numbers(std::string_view text, const std::vector<std::size_t>& places) {
  std::string result;
  std::size_t begin = 0;
  for (const std::size_t place : places) {
    for (const std::string_view number : {"NaN", "Infinity"}) {
      if (text.substr(place, number.size()) != number) continue;
      // A minus sign belongs to the number and must go with it.
      const bool is_negative = place > begin && text[place - 1] == '-';
      result.append(text, begin, place - begin - (is_negative ? 1 : 0));
      result += "null";
      begin = place + number.size();
    }
  }
  return result.append(text, begin);
}

}  // namespace

[[noreturn]] void refuse_keras_model(const std::string& label, const std::string& problem) {
  throw Error(ErrorCode::invalid_file, fmt::format("{} {}; save the model again with Keras", label, problem));
}

Json parse_keras_json(std::string_view text, const std::string& label) {
  if (text.size() > kMaxKerasJsonBytes) {
    refuse_keras_model(label, fmt::format("has {} bytes, and at most {} are read", text.size(), kMaxKerasJsonBytes));
  }
  const Scan found = scan(text);
  if (found.depth > kMaxDepth) refuse_keras_model(label, fmt::format("is nested deeper than {} levels", kMaxDepth));
  // The text is copied only if it must be changed: it may have 64 MiB.
  Json json = found.numbers.empty() ? Json::parse(text, nullptr, false)
                                    : Json::parse(without_special_numbers(text, found.numbers), nullptr, false);
  if (json.is_discarded()) refuse_keras_model(label, "is not JSON");
  return json;
}

const Json& member(const Json& object, std::string_view key) {
  // Returned by reference, so a chain of members needs no check after each step.
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::string text_member(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<std::int64_t> integer_value(const Json& value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const bool is_too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > kMost;
  return value.is_number_integer() && !is_too_large ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

double number_member(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  return value.is_number() ? value.get<double>() : 0.0;
}

std::optional<float> finite_f32(const Json& value, float otherwise) {
  if (value.is_null()) return otherwise;
  const double number = value.is_number() ? value.get<double>() : std::numeric_limits<double>::infinity();
  // A cast of a larger number would not be defined. Written so that a NaN is refused too.
  if (!(std::abs(number) <= std::numeric_limits<float>::max())) return std::nullopt;
  return static_cast<float>(number);
}

bool flag_member(const Json& object, std::string_view key, bool otherwise) {
  const Json& value = member(object, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

}  // namespace holdfast::format
