// Both sides draw from the same distributions, but name two of them otherwise: Keras cuts off the tails of what it
// calls GlorotNormal and HeNormal, and Holdfast says so in the name.

#include "keras_layers/keras_initializer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "keras_layers/keras_layer_writer.h"

namespace holdfast::format {
namespace {

constexpr const char* kInitializerModule = "keras.initializers";

// Variance scaling that has a name on at least one side.
struct ScalingRow {
  std::string_view holdfast;
  std::string_view keras;       // name of the object; empty if only its numbers say it
  std::string_view keras_word;  // the same as a word
  double scale;
  std::string_view mode;
  std::string_view distribution;
};

// Factors and modes are those of Keras's classes. The same three values in a VarianceScaling of a file get the name
// too, so one initializer has one text.
constexpr std::array kInitializerScalings = {
    ScalingRow{"glorot_uniform", "GlorotUniform", "glorot_uniform", 1, "fan_avg", "uniform"},
    ScalingRow{"truncated_glorot_normal", "GlorotNormal", "glorot_normal", 1, "fan_avg", "truncated_normal"},
    ScalingRow{"glorot_normal", "", "", 1, "fan_avg", "untruncated_normal"},
    ScalingRow{"he_uniform", "HeUniform", "he_uniform", 2, "fan_in", "uniform"},
    ScalingRow{"truncated_he_normal", "HeNormal", "he_normal", 2, "fan_in", "truncated_normal"},
    ScalingRow{"he_normal", "", "", 2, "fan_in", "untruncated_normal"},
    ScalingRow{"lecun_uniform", "LecunUniform", "lecun_uniform", 1, "fan_in", "uniform"},
    ScalingRow{"lecun_normal", "LecunNormal", "lecun_normal", 1, "fan_in", "truncated_normal"}};

// A function with numbers. Keras names each number, Holdfast knows them by their order.
struct FunctionRow {
  std::string_view holdfast;
  std::string_view keras;
  std::string_view keras_word;
  std::array<std::string_view, 2> options;  // in Holdfast's order; the second may be empty
  std::array<float, 2> otherwise;
  bool has_seed;
};

// Defaults as in Keras: a file may leave a number out.
constexpr std::array kInitializerFunctions = {
    FunctionRow{"normal", "RandomNormal", "random_normal", {"stddev", "mean"}, {0.05F, 0}, true},
    FunctionRow{"truncated_normal", "TruncatedNormal", "truncated_normal", {"stddev", "mean"}, {0.05F, 0}, true},
    FunctionRow{"uniform", "RandomUniform", "random_uniform", {"minval", "maxval"}, {-0.05F, 0.05F}, true},
    FunctionRow{"constant", "Constant", "constant", {"value", ""}, {0, 0}, false},
    FunctionRow{"orthogonal", "Orthogonal", "orthogonal", {"gain", ""}, {1, 0}, true},
    FunctionRow{"identity", "Identity", "identity", {"gain", ""}, {1, 0}, false}};

// Without a name, the three values themselves are the text: variance_scaling(SCALE,MODE,DISTRIBUTION).
std::optional<std::string> scaling_of_keras(const Json& config) {
  const auto scale = finite_f32(member(config, "scale"), 1);
  const std::string mode = member(config, "mode").is_null() ? "fan_in" : text_member(config, "mode");
  std::string distribution = text_member(config, "distribution");
  // Keras 2 called the truncated distribution "normal".
  if (distribution.empty() || distribution == "normal") distribution = "truncated_normal";
  if (!scale || !(*scale > 0)) return std::nullopt;
  for (const ScalingRow& row : kInitializerScalings) {
    if (row.scale == *scale && row.mode == mode && row.distribution == distribution) return std::string(row.holdfast);
  }
  constexpr std::array<std::string_view, 3> kModes = {"fan_in", "fan_out", "fan_avg"};
  constexpr std::array<std::string_view, 3> kDistributions = {"truncated_normal", "untruncated_normal", "uniform"};
  const bool is_known = std::find(kModes.begin(), kModes.end(), mode) != kModes.end() &&
                        std::find(kDistributions.begin(), kDistributions.end(), distribution) != kDistributions.end();
  if (!is_known) return std::nullopt;
  return fmt::format("variance_scaling({},{},{})", *scale, mode, distribution);
}

std::optional<std::string> function_of_keras(const FunctionRow& row, const Json& config) {
  const auto first = finite_f32(member(config, row.options[0]), row.otherwise[0]);
  const auto second =
      row.options[1].empty() ? std::optional(0.0F) : finite_f32(member(config, row.options[1]), row.otherwise[1]);
  if (!first || !second) return std::nullopt;
  // These two have names of their own, and a deviation is never negative.
  if (row.holdfast == "constant" && *first == 0) return "zeros";
  if (row.holdfast == "constant" && *first == 1) return "ones";
  if (row.options[0] == "stddev" && *first < 0) return std::nullopt;
  // A mean of 0 is left out of the text. Both ends of a uniform distribution always stand there.
  const bool has_second = row.holdfast == "uniform" || (!row.options[1].empty() && *second != 0);
  return has_second ? fmt::format("{}({},{})", row.holdfast, *first, *second)
                    : fmt::format("{}({})", row.holdfast, *first);
}

// Parts between parentheses, as numbers or words.
std::vector<std::string_view> arguments_of(std::string_view text) {
  std::vector<std::string_view> parts;
  const std::size_t begin = text.find('(');
  if (begin == std::string_view::npos || !text.ends_with(')')) return parts;
  std::string_view rest = text.substr(begin + 1, text.size() - begin - 2);
  while (true) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    parts.push_back(rest.substr(0, end));
    if (end == rest.size()) return parts;
    rest.remove_prefix(end + 1);
  }
}

// The text is one of Holdfast's own graph. What is not a number becomes 0: an initializer has no influence on a file,
// whose weights replace what it draws.
double number_from(std::string_view text) {
  double value = 0;
  // from_chars() does not look at the locale.
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Json keras_scaling(double scale, std::string_view mode, std::string_view distribution) {
  return keras_object(kInitializerModule, "VarianceScaling",
                      {{"scale", scale}, {"mode", mode}, {"distribution", distribution}, {"seed", nullptr}});
}

}  // namespace

std::optional<std::string> initializer_of_keras(const Json& value) {
  std::string name = value.is_string() ? value.get<std::string>() : text_member(value, "class_name");
  const Json& config = member(value, "config");
  if (name == "Zeros" || name == "zeros" || name == "zero") return "zeros";
  if (name == "Ones" || name == "ones" || name == "one") return "ones";
  if (name == "VarianceScaling" || name == "variance_scaling") return scaling_of_keras(config);
  // Other names of the same classes.
  if (name == "normal") name = "RandomNormal";
  if (name == "uniform") name = "RandomUniform";
  if (name == "IdentityInitializer") name = "Identity";
  if (name == "OrthogonalInitializer") name = "Orthogonal";
  for (const ScalingRow& row : kInitializerScalings) {
    // Its other options are a seed, which means nothing here: Holdfast draws from the seed of the run.
    if (!row.keras.empty() && (name == row.keras || name == row.keras_word)) return std::string(row.holdfast);
  }
  for (const FunctionRow& row : kInitializerFunctions) {
    if (name == row.keras || name == row.keras_word) return function_of_keras(row, config);
  }
  return std::nullopt;
}

Json keras_initializer(std::string_view text) {
  if (text == "ones") return "ones";
  for (const ScalingRow& row : kInitializerScalings) {
    if (text != row.holdfast) continue;
    return row.keras.empty() ? keras_scaling(row.scale, row.mode, row.distribution) : Json(row.keras_word);
  }
  const std::string_view function = text.substr(0, text.find('('));
  const std::vector<std::string_view> arguments = arguments_of(text);
  if (function == "variance_scaling" && arguments.size() == 3) {
    return keras_scaling(number_from(arguments[0]), arguments[1], arguments[2]);
  }
  for (const FunctionRow& row : kInitializerFunctions) {
    if (function != row.holdfast || arguments.empty()) continue;
    Json config = {{std::string(row.options[0]), number_from(arguments[0])}};
    if (!row.options[1].empty()) {
      config[std::string(row.options[1])] =
          arguments.size() > 1 ? number_from(arguments[1]) : static_cast<double>(row.otherwise[1]);
    }
    // The seed of a run means nothing to Keras, which draws one of its own for null.
    if (row.has_seed) config["seed"] = nullptr;
    return keras_object(kInitializerModule, std::string(row.keras), std::move(config));
  }
  // A list of values, or a text that nobody knows. See the header for why this is not an error.
  return "zeros";
}

}  // namespace holdfast::format
