// Text stands in files, and draws in weights: the names and the order of draws of what exists must never change. An
// initializer is a kind and some numbers, so that two of them can be compared, written and read.

#include "holdfast/nn/initializer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "nn/layers/initial_draws.h"

namespace holdfast {

namespace {

// Both lists are in the order of their enumerations, whose values are their indices.
constexpr std::array<std::string_view, 3> kFanModes = {"fan_in", "fan_out", "fan_avg"};
constexpr std::array<std::string_view, 3> kDistributions = {"truncated_normal", "untruncated_normal", "uniform"};

// Cases of variance scaling that have a name of their own.
struct NamedScaling {
  std::string_view name;
  VarianceScalingOptions options;
};

// Keras truncates what it calls glorot_normal and he_normal. Files rely on what these names mean here.
constexpr std::array kNamedScalings = {
    NamedScaling{"glorot_uniform", {1, FanMode::fan_avg, ScalingDistribution::uniform}},
    NamedScaling{"glorot_normal", {1, FanMode::fan_avg, ScalingDistribution::untruncated_normal}},
    NamedScaling{"he_uniform", {2, FanMode::fan_in, ScalingDistribution::uniform}},
    NamedScaling{"he_normal", {2, FanMode::fan_in, ScalingDistribution::untruncated_normal}},
    NamedScaling{"lecun_uniform", {1, FanMode::fan_in, ScalingDistribution::uniform}},
    NamedScaling{"lecun_normal", {1, FanMode::fan_in, ScalingDistribution::truncated_normal}},
    NamedScaling{"truncated_glorot_normal", {1, FanMode::fan_avg, ScalingDistribution::truncated_normal}},
    NamedScaling{"truncated_he_normal", {2, FanMode::fan_in, ScalingDistribution::truncated_normal}},
};

void check_finite(std::string_view what, std::initializer_list<float> numbers) {
  for (const float number : numbers) {
    if (std::isfinite(number)) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} must be finite, but is {}; choose a finite number", what, number));
  }
}

void check_deviation(std::string_view what, float standard_deviation) {
  // A deviation of 0 makes all elements the mean, which does no harm.
  if (std::isfinite(standard_deviation) && standard_deviation >= 0) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("the standard deviation of {} must be finite and not negative, but is {}", what, standard_deviation));
}

double scaled_variance(double scale, FanMode mode, std::int64_t fan_in_count, std::int64_t fan_out_count) {
  // A layer need not give fans. They are 0 then, by which nothing can be divided.
  const auto inputs = static_cast<double>(std::max<std::int64_t>(1, fan_in_count));
  const auto outputs = static_cast<double>(std::max<std::int64_t>(1, fan_out_count));
  switch (mode) {
    case FanMode::fan_in:
      return scale / inputs;
    case FanMode::fan_out:
      return scale / outputs;
    case FanMode::fan_avg:
      return scale / ((inputs + outputs) / 2);
  }
  HOLDFAST_ASSERT(false);
}

// The name may come from a file, so the sentence shows only its beginning.
[[noreturn]] void refuse_name(std::string_view name) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("no initializer is called {}; there are glorot_uniform, glorot_normal, he_uniform, "
                          "he_normal, lecun_uniform, lecun_normal, truncated_glorot_normal, truncated_he_normal, "
                          "variance_scaling(scale,mode,distribution), normal(deviation), truncated_normal(deviation), "
                          "uniform(minimum,maximum), orthogonal(gain), identity(gain), constant(value), "
                          "values(...), zeros and ones",
                          quoted_text(name, 100)));
}

template <std::size_t count>
std::size_t index_of(std::string_view text, const std::array<std::string_view, count>& names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) refuse_name(text);
  return static_cast<std::size_t>(found - names.begin());
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string call_text(std::string_view function, std::span<const float> numbers) {
  std::string text;
  // json_number() writes the fewest digits that give the same float again, so a file brings back the same bits.
  for (const float number : numbers) {
    if (!text.empty()) text += ',';
    text += json_number(number);
  }
  return fmt::format("{}({})", function, text);
}

// Deviation and mean, of which a mean of 0 is not written.
std::string normal_text(std::string_view function, const std::vector<float>& numbers) {
  return call_text(function, std::span(numbers).first(numbers[1] == 0 ? 1 : 2));
}

}  // namespace

// Copies of a layer copy its initializers, so definitions are shared and never change.
Initializer::Initializer(Definition definition)
    : definition_(std::make_shared<const Definition>(std::move(definition))) {}

Initializer Initializer::variance_scaling(const VarianceScalingOptions& options) {
  // The root of the variance is taken, so it must not be negative.
  if (!std::isfinite(options.scale) || options.scale <= 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("variance_scaling needs a finite scale above 0, not {}", options.scale));
  }
  return Initializer({.kind = Kind::variance_scaling,
                      .numbers = {options.scale},
                      .mode = options.mode,
                      .distribution = options.distribution});
}

Initializer Initializer::glorot_uniform() {
  return variance_scaling({1, FanMode::fan_avg, ScalingDistribution::uniform});
}

Initializer Initializer::glorot_normal() {
  return variance_scaling({1, FanMode::fan_avg, ScalingDistribution::untruncated_normal});
}

Initializer Initializer::he_uniform() {
  return variance_scaling({2, FanMode::fan_in, ScalingDistribution::uniform});
}

Initializer Initializer::he_normal() {
  return variance_scaling({2, FanMode::fan_in, ScalingDistribution::untruncated_normal});
}

Initializer Initializer::lecun_uniform() {
  return variance_scaling({1, FanMode::fan_in, ScalingDistribution::uniform});
}

Initializer Initializer::lecun_normal() {
  return variance_scaling({1, FanMode::fan_in, ScalingDistribution::truncated_normal});
}

Initializer Initializer::truncated_glorot_normal() {
  return variance_scaling({1, FanMode::fan_avg, ScalingDistribution::truncated_normal});
}

Initializer Initializer::truncated_he_normal() {
  return variance_scaling({2, FanMode::fan_in, ScalingDistribution::truncated_normal});
}

Initializer Initializer::constant(float value) {
  check_finite("the value of a constant initializer", {value});
  return Initializer({.kind = Kind::constant, .numbers = {value}});
}

Initializer Initializer::values(std::vector<float> values) {
  // One NaN among the weights could reach each output.
  for (const float value : values) check_finite("a value of an initializer", {value});
  return Initializer({.kind = Kind::values, .numbers = std::move(values)});
}

Initializer Initializer::normal(float standard_deviation) {
  return random_normal(0, standard_deviation);
}

Initializer Initializer::random_normal(float mean, float standard_deviation) {
  // The deviation comes first among the numbers, as in the text.
  check_finite("the mean of a normal initializer", {mean});
  check_deviation("a normal initializer", standard_deviation);
  return Initializer({.kind = Kind::normal, .numbers = {standard_deviation, mean}});
}

Initializer Initializer::truncated_normal(float mean, float standard_deviation) {
  check_finite("the mean of a truncated_normal initializer", {mean});
  check_deviation("a truncated_normal initializer", standard_deviation);
  return Initializer({.kind = Kind::truncated_normal, .numbers = {standard_deviation, mean}});
}

Initializer Initializer::random_uniform(float minimum, float maximum) {
  check_finite("a limit of a uniform initializer", {minimum, maximum});
  if (minimum > maximum) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a uniform initializer needs a minimum that is at most the maximum, not {} and {}", minimum,
                            maximum));
  }
  // Draws are scaled by the difference, and an infinite one would make infinities and NaN of them.
  if (!std::isfinite(maximum - minimum)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a uniform initializer needs limits whose difference is a finite float, not {} and {}; "
                            "choose limits closer to 0",
                            minimum, maximum));
  }
  return Initializer({.kind = Kind::uniform, .numbers = {minimum, maximum}});
}

Initializer Initializer::orthogonal(float gain) {
  check_finite("the gain of an orthogonal initializer", {gain});
  return Initializer({.kind = Kind::orthogonal, .numbers = {gain}});
}

Initializer Initializer::identity(float gain) {
  check_finite("the gain of an identity initializer", {gain});
  return Initializer({.kind = Kind::identity, .numbers = {gain}});
}

std::string Initializer::name() const {
  const std::vector<float>& numbers = definition_->numbers;
  switch (definition_->kind) {
    case Kind::variance_scaling:
      for (const NamedScaling& named : kNamedScalings) {
        // The short name goes first, so that equal initializers have equal texts.
        if (variance_scaling(named.options) == *this) return std::string(named.name);
      }
      return fmt::format("variance_scaling({},{},{})", json_number(numbers[0]),
                         kFanModes.at(static_cast<std::size_t>(definition_->mode)),
                         kDistributions.at(static_cast<std::size_t>(definition_->distribution)));
    case Kind::constant:
      // These two are the most frequent constants and have names of their own.
      if (*this == zeros()) return "zeros";
      return *this == ones() ? "ones" : call_text("constant", numbers);
    case Kind::values:
      return call_text("values", numbers);
    case Kind::normal:
      return normal_text("normal", numbers);
    case Kind::truncated_normal:
      return normal_text("truncated_normal", numbers);
    case Kind::uniform:
      return call_text("uniform", numbers);
    case Kind::orthogonal:
      return call_text("orthogonal", numbers);
    case Kind::identity:
      return call_text("identity", numbers);
  }
  HOLDFAST_ASSERT(false);
}

Initializer Initializer::from_call(std::string_view function, const std::vector<std::string_view>& arguments) {
  const std::size_t count = arguments.size();
  if (function == "variance_scaling" && count == 3) {
    return variance_scaling({float_from_text(arguments[0]), static_cast<FanMode>(index_of(arguments[1], kFanModes)),
                             static_cast<ScalingDistribution>(index_of(arguments[2], kDistributions))});
  }
  // Numbers alone follow: words are only in variance_scaling.
  std::vector<float> numbers;
  for (const std::string_view argument : arguments) numbers.push_back(float_from_text(argument));
  // The functions check the numbers, since the text may come from a file.
  if (function == "values") return values(std::move(numbers));
  if (function == "constant" && count == 1) return constant(numbers[0]);
  if (function == "orthogonal" && count == 1) return orthogonal(numbers[0]);
  if (function == "identity" && count == 1) return identity(numbers[0]);
  if (function == "uniform" && count == 2) return random_uniform(numbers[0], numbers[1]);
  // A text without a mean has the mean 0. split_at_commas() gives one part at least, so the deviation is there.
  if (count == 1) numbers.push_back(0);
  if (function == "normal" && count <= 2) return random_normal(numbers[1], numbers[0]);
  if (function == "truncated_normal" && count <= 2) return truncated_normal(numbers[1], numbers[0]);
  refuse_name(function);
}

Initializer Initializer::from_name(std::string_view name) {
  if (name == "zeros") return zeros();
  if (name == "ones") return ones();
  for (const NamedScaling& named : kNamedScalings) {
    if (name == named.name) return variance_scaling(named.options);
  }
  const std::size_t opening = name.find('(');
  if (opening == std::string_view::npos || !name.ends_with(')')) refuse_name(name);
  return from_call(name.substr(0, opening), split_at_commas(name.substr(opening + 1, name.size() - opening - 2)));
}

void Initializer::check(const Shape& shape) const {
  // Most initializers fit each shape. The others are refused where a layer declares the weight, before anything is
  // drawn.
  const Kind kind = definition_->kind;
  if (kind == Kind::orthogonal && shape.rank() < 2) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("an orthogonal initializer needs an array of two axes or more, not {}; choose another one",
                            shape.to_string()));
  }
  if (kind == Kind::identity && shape.rank() != 2) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("an identity initializer needs an array of two axes, not {}; choose another one",
                            shape.to_string()));
  }
  if (kind == Kind::values && static_cast<std::int64_t>(definition_->numbers.size()) != shape.element_count()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("an initializer has {} values for an array {} of {} elements", definition_->numbers.size(),
                            shape.to_string(), shape.element_count()));
  }
}

// For arrays whose shape says nothing: an initializer that needs axes has been refused by check().
void Initializer::fill(std::span<float> values, std::int64_t fan_in, std::int64_t fan_out, Random random) const {
  fill(values, Shape{static_cast<std::int64_t>(values.size())}, fan_in, fan_out, random);
}

void Initializer::fill(std::span<float> values, const Shape& shape, std::int64_t fan_in, std::int64_t fan_out,
                       Random random) const {
  HOLDFAST_ASSERT(fan_in >= 0 && fan_out >= 0);
  HOLDFAST_ASSERT(static_cast<std::int64_t>(values.size()) == shape.element_count());
  const std::vector<float>& numbers = definition_->numbers;
  const auto scale_and_shift = [values](float scale, float shift) {
    for (float& value : values) value = value * scale + shift;
  };
  switch (definition_->kind) {
    case Kind::variance_scaling: {
      // The variance is computed in double, so that a fan loses no digits.
      const double variance = scaled_variance(numbers[0], definition_->mode, fan_in, fan_out);
      if (definition_->distribution == ScalingDistribution::uniform) return fill_uniform(values, variance, random);
      if (definition_->distribution == ScalingDistribution::untruncated_normal)
        return fill_normal(values, variance, random);
      // Truncation makes a distribution narrower, and the division makes up for it, as in Keras.
      return fill_truncated_normal(values, std::sqrt(variance) / kTruncatedDeviation, random);
    }
    case Kind::constant:
      std::fill(values.begin(), values.end(), numbers[0]);
      return;
    case Kind::values:
      // check() has compared the counts when the weight was declared.
      HOLDFAST_ASSERT(numbers.size() == values.size());
      std::copy(numbers.begin(), numbers.end(), values.begin());
      return;
    case Kind::normal:
      fill_normal(values, static_cast<double>(numbers[0]) * numbers[0], random);
      // A sum with 0 would make 0 of -0.
      if (numbers[1] != 0) scale_and_shift(1, numbers[1]);
      return;
    case Kind::truncated_normal:
      // Here the deviation is that before truncation, as in Keras's TruncatedNormal.
      fill_truncated_normal(values, numbers[0], random);
      if (numbers[1] != 0) scale_and_shift(1, numbers[1]);
      return;
    case Kind::uniform:
      for (float& value : values) value = numbers[0] + (numbers[1] - numbers[0]) * random.uniform();
      return;
    case Kind::orthogonal: {
      // All axes but the last one count as rows, as in Keras (Saxe et al., "Exact solutions to the nonlinear dynamics
      // of learning", 2014).
      const std::int64_t columns = shape[shape.rank() - 1];
      fill_orthogonal(values, shape.element_count() / columns, columns, random);
      return scale_and_shift(numbers[0], 0);
    }
    case Kind::identity: {
      std::fill(values.begin(), values.end(), 0.0F);
      const std::int64_t columns = shape[1];
      for (std::int64_t i = 0; i < std::min(shape[0], columns); ++i) {
        values[static_cast<std::size_t>(i * columns + i)] = numbers[0];
      }
      return;
    }
  }
}

}  // namespace holdfast
