// One table for both directions. Numbers come from anybody's file, so each is checked before it becomes text.

#include "keras_layers/keras_constraint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "keras_layers/keras_layer_writer.h"

namespace holdfast::format {
namespace {

struct ConstraintNumber {
  const char* keras;
  float otherwise;  // what Keras takes where a file lacks it
};
struct ConstraintClass {
  const char* keras;
  const char* holdfast;
  std::vector<ConstraintNumber> numbers;
  bool has_axes = true;
};

const std::array<ConstraintClass, 4>& constraint_classes() {
  static const std::array<ConstraintClass, 4> classes = {
      {{"MaxNorm", "max_norm", {{"max_value", 2}}},
       {"NonNeg", "non_neg", {}, false},
       {"UnitNorm", "unit_norm", {}},
       {"MinMaxNorm", "min_max_norm", {{"min_value", 0}, {"max_value", 1}, {"rate", 1}}}}};
  return classes;
}

// One axis or a list of them, different ones; nothing for another value.
std::optional<std::vector<std::int64_t>> axes_of(const Json& value) {
  // More than any array has. Later arithmetic on such numbers cannot overflow.
  constexpr std::int64_t kMost = 16;
  std::vector<std::int64_t> axes;
  for (const Json& entry : value.is_array() ? value : Json::array({value})) {
    const auto axis = integer_value(entry);
    if (!axis || *axis < -kMost || *axis >= kMost || std::ranges::find(axes, *axis) != axes.end()) return std::nullopt;
    axes.push_back(*axis);
  }
  return axes.empty() ? std::nullopt : std::optional(axes);
}

// A finite float of at least 0; nothing for another value.
std::optional<float> bound_of(const Json& value) {
  const auto number = value.is_null() ? std::nullopt : finite_f32(value, 0);
  return number && *number >= 0 ? number : std::nullopt;
}

// Only MinMaxNorm has three numbers: both ends of a range, and a rate from 0 to 1.
bool fits_class(const ConstraintClass& known, const std::vector<float>& numbers) {
  return known.numbers.size() < 3 || (numbers[0] <= numbers[1] && numbers[2] <= 1);
}

}  // namespace

std::optional<std::string> constraint_of_keras(const Json& value) {
  // A word of Keras is a class with its defaults.
  const std::string name = value.is_string() ? value.get<std::string>() : text_member(value, "class_name");
  const auto known = std::ranges::find_if(constraint_classes(), [&](const ConstraintClass& one) {
    return name == one.keras || (value.is_string() && name == one.holdfast);
  });
  if (known == constraint_classes().end()) return std::nullopt;
  const Json& config = member(value, "config");
  std::vector<std::string> parts;
  std::vector<float> numbers;
  for (const ConstraintNumber& number : known->numbers) {
    const Json& given = member(config, number.keras);
    const auto found = given.is_null() ? number.otherwise : bound_of(given);
    if (!found) return std::nullopt;
    numbers.push_back(*found);
    parts.push_back(Json(*found).dump());
  }
  if (!fits_class(*known, numbers)) return std::nullopt;
  const Json& axis = member(config, "axis");
  // Axis 0 is the default on both sides, and the text leaves it out, so equal constraints have equal texts.
  if (known->has_axes && !axis.is_null() && axis != 0) {
    const auto axes = axes_of(axis);
    if (!axes) return std::nullopt;
    if (*axes != std::vector<std::int64_t>{0}) parts.push_back(fmt::format("[{}]", fmt::join(*axes, ",")));
  }
  return fmt::format("{}({})", known->holdfast, fmt::join(parts, ","));
}

// The numbers and axes of a text are a list of JSON without its brackets.
std::optional<Json> keras_constraint(std::string_view text) {
  // Before the JSON parser sees it: the text may come from a file of anybody, and brackets can be nested.
  constexpr std::size_t kLongest = 200;
  const std::size_t open = text.find('(');
  if (text.size() > kLongest || open == std::string_view::npos || !text.ends_with(')')) return std::nullopt;
  const auto known = std::ranges::find_if(
      constraint_classes(), [&](const ConstraintClass& one) { return text.substr(0, open) == one.holdfast; });
  const Json list = Json::parse(fmt::format("[{}]", text.substr(open + 1, text.size() - open - 2)), nullptr, false);
  if (known == constraint_classes().end() || !list.is_array()) return std::nullopt;
  const std::size_t count = known->numbers.size();
  // Axes are the last entry. A text leaves them out where they are [0].
  const bool has_axes = known->has_axes && list.size() == count + 1;
  if (list.size() != count && !has_axes) return std::nullopt;
  Json config = Json::object();
  std::vector<float> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = bound_of(list[i]);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    config[known->numbers[i].keras] = list[i];
  }
  if (!fits_class(*known, numbers)) return std::nullopt;
  if (known->has_axes) {
    const auto axes = has_axes ? axes_of(list.back()) : std::optional(std::vector<std::int64_t>{0});
    if (!axes) return std::nullopt;
    config["axis"] = axes->size() == 1 ? Json(axes->front()) : Json(*axes);
  }
  return keras_object("keras.constraints", known->keras, std::move(config));
}

}  // namespace holdfast::format
