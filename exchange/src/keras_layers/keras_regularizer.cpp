// Keras writes an object with a class, and Holdfast a text with the factors. A regularizer of another class has no
// text.

#include "keras_layers/keras_regularizer.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "keras_layers/keras_layer_writer.h"

namespace holdfast::format {
namespace {

// A finite float of at least 0, or what Keras takes where a file lacks it.
std::optional<float> factor_of(const Json& config, const char* key, float otherwise) {
  const Json& value = member(config, key);
  if (value.is_null()) return otherwise;
  if (!value.is_number()) return std::nullopt;
  const auto factor = static_cast<float>(value.get<double>());
  return factor >= 0 && std::isfinite(factor) ? std::optional(factor) : std::nullopt;
}

// The shortest form, so L1L2 with one factor of 0 has the text of the other class.
std::string text_of(float l1, float l2) {
  if (l2 == 0) return fmt::format("l1({})", Json(l1).dump());
  if (l1 == 0) return fmt::format("l2({})", Json(l2).dump());
  return fmt::format("l1_l2({},{})", Json(l1).dump(), Json(l2).dump());
}

// What follows the number in the text, or nothing without one.
std::optional<std::string_view> take_number(std::string_view text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // As factor_of() accepts them. The text may come from a file of anybody.
  if (error != std::errc() || !(number >= 0) || !std::isfinite(static_cast<float>(number))) return std::nullopt;
  return text.substr(static_cast<std::size_t>(end - text.data()));
}

Json object_of(const char* class_name, Json config) {
  return keras_object("keras.regularizers", class_name, std::move(config));
}

}  // namespace

static std::optional<std::string> orthogonal_of_keras(const Json& config) {
  const auto factor = factor_of(config, "factor", 0.01F);
  const std::string mode = config.contains("mode") ? text_member(config, "mode") : "rows";
  if (!factor || (mode != "rows" && mode != "columns")) return std::nullopt;
  return *factor == 0 ? std::string() : fmt::format("orthogonal({},{})", Json(*factor).dump(), mode);
}

std::optional<std::string> regularizer_of_keras(const Json& value) {
  // Keras's words have its default factors.
  if (value == "orthogonal_regularizer" || value == "OrthogonalRegularizer") return "orthogonal(0.01,rows)";
  if (value == "l1" || value == "L1") return "l1(0.01)";
  if (value == "l2" || value == "L2") return "l2(0.01)";
  const std::string kind = text_member(value, "class_name");
  const Json& config = member(value, "config");
  if (kind == "OrthogonalRegularizer") return orthogonal_of_keras(config);
  if (kind != "L1" && kind != "L2" && kind != "L1L2") return std::nullopt;
  // Keras's own defaults, which differ between its classes.
  const float otherwise = kind == "L1L2" ? 0.0F : 0.01F;
  const auto l1 = kind == "L2" ? std::optional(0.0F) : factor_of(config, "l1", otherwise);
  const auto l2 = kind == "L1" ? std::optional(0.0F) : factor_of(config, "l2", otherwise);
  if (!l1 || !l2) return std::nullopt;
  // Without a factor there is no penalty, so the text says none.
  return *l1 == 0 && *l2 == 0 ? std::string() : text_of(*l1, *l2);
}

std::optional<Json> keras_regularizer(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) return std::nullopt;
  const std::string_view function = text.substr(0, open);
  double first = 0;
  double second = 0;
  auto rest = take_number(text.substr(open + 1), first);
  if (function == "l1_l2" && rest && rest->starts_with(',')) rest = take_number(rest->substr(1), second);
  if (function == "orthogonal" && (rest == ",rows)" || rest == ",columns)")) {
    const std::string mode(rest->substr(1, rest->size() - 2));
    return object_of("OrthogonalRegularizer", {{"factor", first}, {"mode", mode}});
  }
  // The whole text must have been read: what follows a parenthesis would be lost.
  if (rest != ")") return std::nullopt;
  if (function == "l1") return object_of("L1", {{"l1", first}});
  if (function == "l2") return object_of("L2", {{"l2", first}});
  if (function == "l1_l2") return object_of("L1L2", {{"l1", first}, {"l2", second}});
  return std::nullopt;
}

}  // namespace holdfast::format
