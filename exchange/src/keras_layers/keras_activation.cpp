// Names are the same on both sides, but only Holdfast's have numbers in them. Keras takes other numbers than the
// defaults in layers (LeakyReLU) or in functions (keras.ops.celu).

#include "keras_layers/keras_activation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

namespace holdfast::format {
namespace {

struct ActivationRow {
  std::string_view name;      // on both sides
  std::string_view function;  // of keras.ops; empty where Keras lacks one
  std::string_view option;    // its number; empty if it has none
  float otherwise = 0;        // the number that Keras takes where none is given
  float layer_otherwise = 0;  // the same for the layer
  std::string_view layer = {};
};

constexpr std::array kActivationRows = {
    ActivationRow{"linear", "Identity", ""},
    ActivationRow{"tanh", "Tanh", ""},
    ActivationRow{"sigmoid", "Sigmoid", ""},
    ActivationRow{"relu6", "Relu6", ""},
    // The only row where Keras's layer and its function have different defaults.
    ActivationRow{"leaky_relu", "LeakyRelu", "negative_slope", 0.2F, 0.3F, "LeakyReLU"},
    ActivationRow{"elu", "Elu", "alpha", 1, 1, "ELU"},
    ActivationRow{"selu", "Selu", ""},
    ActivationRow{"celu", "Celu", "alpha", 1},
    ActivationRow{"silu", "", ""},
    ActivationRow{"softplus", "", ""},
    ActivationRow{"softsign", "Softsign", ""},
    ActivationRow{"hard_sigmoid", "HardSigmoid", ""},
    ActivationRow{"hard_silu", "HardSilu", ""},
    ActivationRow{"hard_tanh", "HardTanh", ""},
    ActivationRow{"tanh_shrink", "TanhShrink", ""},
    ActivationRow{"soft_shrink", "SoftShrink", "threshold", 0.5F},
    ActivationRow{"hard_shrink", "HardShrink", "threshold", 0.5F},
    ActivationRow{"exponential", "", ""},
    ActivationRow{"log_sigmoid", "LogSigmoid", ""},
    ActivationRow{"mish", "", ""},
    ActivationRow{"log_softmax", "", ""},
    ActivationRow{"squareplus", "Squareplus", "b", 4},
    ActivationRow{"sparse_plus", "SparsePlus", ""},
    ActivationRow{"sparse_sigmoid", "SparseSigmoid", ""},
    ActivationRow{"softmax", "", ""},
    ActivationRow{"relu", "Relu", ""},
    // Keras's activation of this name is the exact one.
    ActivationRow{"gelu", "", ""},
};

template <typename Fits>
const ActivationRow* activation_row(const Fits& fits) {
  const auto found = std::find_if(kActivationRows.begin(), kActivationRows.end(), fits);
  return found == kActivationRows.end() ? nullptr : &*found;
}

// Shortest digits that give the f32 again, as Holdfast's own texts have them.
std::string activation_number_text(float number) {
  return fmt::format("{}", number);
}

// A number that the file lacks is written into the text all the same: what Keras takes then depends on the form that
// was read, and the text of Holdfast has one default.
std::optional<std::string> text_of_row(const ActivationRow& row, const Json& config, float otherwise) {
  if (row.option.empty()) return std::string(row.name);
  const Json* value = &member(config, row.option);
  // Keras 2 named the slope of LeakyReLU alpha.
  if (value->is_null() && row.layer == "LeakyReLU") value = &member(config, "alpha");
  const auto number = finite_f32(*value, otherwise);
  if (!number) return std::nullopt;
  return fmt::format("{}({})", row.name, activation_number_text(*number));
}

std::optional<std::string> threshold_of_keras(const Json& config) {
  // Neither of them has a default in Keras.
  if (!config.contains("threshold") || !config.contains("default_value")) return std::nullopt;
  const auto limit = finite_f32(member(config, "threshold"), 0);
  const auto value = finite_f32(member(config, "default_value"), 0);
  if (!limit || !value) return std::nullopt;
  return fmt::format("threshold({},{})", activation_number_text(*limit), activation_number_text(*value));
}

std::optional<std::string> relu_of_keras(const Json& config) {
  const auto slope = finite_f32(member(config, "negative_slope"), 0);
  const auto threshold = finite_f32(member(config, "threshold"), 0);
  const Json& limit = member(config, "max_value");
  const auto maximum = finite_f32(limit, 0);
  const bool fits = slope && threshold && maximum && *slope >= 0 && *threshold >= 0 && *maximum >= 0;
  if (!fits) return std::nullopt;
  // A ReLU with all of its defaults has the plain name, as a Dense with the option "relu" has it.
  if (*slope == 0 && *threshold == 0 && limit.is_null()) return "relu";
  return fmt::format("relu({},{},{})", activation_number_text(*slope),
                     limit.is_null() ? "none" : activation_number_text(*maximum), activation_number_text(*threshold));
}

struct ActivationCall {
  std::string_view function;
  std::vector<std::optional<float>> numbers;  // "none" is missing
};

// "elu(0.5)" is the function elu with one number, and "relu" has none. Whether there
// is such a function is not asked here.
std::optional<ActivationCall> parse_activation(std::string_view text) {
  ActivationCall call{.function = text.substr(0, text.find('(')), .numbers = {}};
  if (call.function.size() == text.size()) return call;
  if (!text.ends_with(')')) return std::nullopt;
  std::string_view rest = text.substr(call.function.size() + 1);
  while (!rest.empty()) {
    // Always found, since the text ends with a parenthesis.
    const std::size_t end = rest.find_first_of(",)");
    const std::string_view part = rest.substr(0, end);
    std::optional<float> number;
    if (part != "none") {
      float value = 0;
      const auto [last, error] = std::from_chars(part.data(), part.data() + part.size(), value);
      // The text may come from a file, so it may be anything.
      if (error != std::errc() || last != part.data() + part.size() || !std::isfinite(value)) return std::nullopt;
      number = value;
    }
    call.numbers.push_back(number);
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return call;
}

// An f32 with few digits should have few digits in Keras's file, too.
Json json_of(float number) {
  double value = 0;
  const std::string text = activation_number_text(number);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::optional<std::string> activation_of_keras(const Json& value) {
  if (value.is_null()) return "linear";
  if (value.is_object() && member(value, "config").is_object()) {
    const std::string class_name = text_member(value, "class_name");
    const Json& config = member(value, "config");
    if (class_name == "ReLU") return relu_of_keras(config);
    const ActivationRow* row =
        activation_row([&](const ActivationRow& r) { return !r.layer.empty() && r.layer == class_name; });
    return row == nullptr ? std::nullopt : text_of_row(*row, config, row->layer_otherwise);
  }
  // Keras 3 may write a function as an object with its name.
  std::string name = value.is_string() ? value.get<std::string>() : text_member(value, "config");
  // Keras has two names for these functions.
  if (name == "swish") name = "silu";
  if (name == "hard_swish") name = "hard_silu";
  // A word has no numbers of its own, so it stands for the defaults of the function.
  const ActivationRow* row = activation_row([&](const ActivationRow& r) { return r.name == name; });
  return row == nullptr ? std::nullopt : text_of_row(*row, Json(), row->otherwise);
}

std::optional<std::string> activation_of_keras_function(std::string_view class_name, const Json& config) {
  const ActivationRow* row =
      activation_row([&](const ActivationRow& r) { return !r.function.empty() && r.function == class_name; });
  if (row != nullptr) return text_of_row(*row, config, row->otherwise);
  if (class_name == "Threshold") return threshold_of_keras(config);
  if (class_name != "Gelu") return std::nullopt;
  // The approximation uses tanh, and is the default of this function.
  return flag_member(config, "approximate", true) ? "gelu_tanh" : "gelu";
}

std::optional<std::string> keras_activation_name(std::string_view text) {
  const auto call = parse_activation(text);
  const ActivationRow* row =
      call ? activation_row([&](const ActivationRow& r) { return r.name == call->function; }) : nullptr;
  if (row == nullptr) return std::nullopt;
  // Keras's option takes a word, which has the defaults. Another number needs a layer of its own, see
  // keras_activation_object().
  const bool is_default = call->numbers.empty() ||
                          (call->numbers.size() == 1 && !row->option.empty() && call->numbers[0] == row->otherwise);
  return is_default ? std::optional(std::string(row->name)) : std::nullopt;
}

std::optional<KerasActivation> keras_activation_object(std::string_view text) {
  constexpr const char* kNeuralFunctions = "keras.src.ops.nn";
  if (text == "gelu_tanh") return KerasActivation{kNeuralFunctions, "Gelu", {{"approximate", true}}};
  const auto call = parse_activation(text);
  if (!call) return std::nullopt;
  if (call->function == "relu" && call->numbers.size() == 3 && call->numbers[0] && call->numbers[2]) {
    return KerasActivation{"keras.layers",
                           "ReLU",
                           {{"negative_slope", json_of(*call->numbers[0])},
                            {"max_value", call->numbers[1] ? json_of(*call->numbers[1]) : Json()},
                            {"threshold", json_of(*call->numbers[2])}}};
  }
  if (call->function == "threshold" && call->numbers.size() == 2 && call->numbers[0] && call->numbers[1]) {
    const Json config = {{"threshold", json_of(*call->numbers[0])}, {"default_value", json_of(*call->numbers[1])}};
    return KerasActivation{kNeuralFunctions, "Threshold", config};
  }
  const ActivationRow* row = activation_row([&](const ActivationRow& r) { return r.name == call->function; });
  if (row == nullptr || row->option.empty() || call->numbers.size() != 1 || !call->numbers[0]) return std::nullopt;
  const float number = *call->numbers[0];
  const Json config = {{std::string(row->option), json_of(number)}};
  // Keras's layer LeakyReLU refuses a negative slope, and the function does not.
  const bool is_layer = !row->layer.empty() && (row->layer != "LeakyReLU" || number >= 0);
  if (is_layer) return KerasActivation{"keras.layers", std::string(row->layer), config};
  return KerasActivation{kNeuralFunctions, std::string(row->function), config};
}

}  // namespace holdfast::format
