// The table of layers says how options are written. An operation becomes a layer where
// Keras has one, because layers align shapes as Holdfast does: at the last axes of a sample. See
// docs/decisions/exchange.md.

#include "keras_layers/keras_layer_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "bytes/byte_source.h"
#include "keras_layers/keras_activation.h"
#include "keras_layers/keras_constraint.h"
#include "keras_layers/keras_initializer.h"
#include "keras_layers/keras_layer_table.h"
#include "keras_layers/keras_regularizer.h"

namespace holdfast::format {
namespace {

constexpr const char* kNumpyOperations = "keras.src.ops.numpy";

struct OperationName {
  std::string_view holdfast;
  const char* keras;
  const char* module = kNumpyOperations;
};
// Operations that are layers where all of their arguments are values.
constexpr std::array kOperationLayers = {OperationName{"add", "Add"}, OperationName{"subtract", "Subtract"},
                                         OperationName{"multiply", "Multiply"}, OperationName{"maximum", "Maximum"},
                                         OperationName{"minimum", "Minimum"}};
constexpr std::array kElementFunctions = {
    OperationName{"add", "Add"},           OperationName{"subtract", "Subtract"},
    OperationName{"multiply", "Multiply"}, OperationName{"divide", "Divide"},
    OperationName{"power", "Power"},       OperationName{"maximum", "Maximum"},
    OperationName{"minimum", "Minimum"},   OperationName{"negative", "Negative"},
    OperationName{"absolute", "Absolute"}, OperationName{"square", "Square"},
    OperationName{"square_root", "Sqrt"},  OperationName{"reciprocal_root", "Rsqrt", "keras.src.ops.math"},
    OperationName{"logarithm", "Log"},     OperationName{"sign", "Sign"}};
// Operations of one value that Keras has as activations.
constexpr std::array kActivationFunctions = {OperationName{"relu", "relu"},
                                             OperationName{"sigmoid", "sigmoid"},
                                             OperationName{"tanh", "tanh"},
                                             OperationName{"gelu", "gelu"},
                                             OperationName{"silu", "silu"},
                                             OperationName{"softplus", "softplus"},
                                             OperationName{"softmax", "softmax"},
                                             OperationName{"copy", "linear"},
                                             OperationName{"exponential", "exponential"}};
constexpr std::array kReducingOperations = {OperationName{"sum", "Sum"}, OperationName{"mean", "Mean"},
                                            OperationName{"largest", "Max"}};

template <std::size_t kCount>
const OperationName* find_operation(const std::array<OperationName, kCount>& names, std::string_view holdfast) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const OperationName& name) { return name.holdfast == holdfast; });
  return found == names.end() ? nullptr : &*found;
}

class LayerWriter {
 public:
  LayerWriter(const ModelGraphLayer& layer, const std::string& name, std::span<const MaybeShape> inputs)
      : layer_(layer), name_(name), inputs_(inputs) {}

  KerasObject write() const {
    const std::string& kind = layer_.kind;
    if (kind == "Operation") return operation(text_member(layer_.config, "operation"));
    // An activation with numbers of its own is another class in Keras, so the row of Activation does not fit it.
    if (kind == "Bidirectional") return bidirectional();
    const bool is_activation = kind == "Activation";
    const std::string text = is_activation ? text_member(layer_.config, "activation") : "";
    if (is_activation && !keras_activation_name(text)) return activation_with_numbers(text);
    return table_layer(row());
  }

 private:
  [[noreturn]] void refuse(const std::string& problem) const {
    refuse_savepoint(fmt::format("its layer {} {}", quoted_text(layer_.name), problem));
  }

  const LayerRow& row() const {
    const bool is_chosen = has_row_for_each_rank(layer_.kind);
    // Such a kind has one class for each rank in Keras. Only the shape of the input tells which.
    const LayerRow* row = row_of_kind(layer_.kind, is_chosen && rank() > 0 ? rank() - 1 : 0);
    if (row != nullptr) return *row;
    if (is_chosen) refuse(fmt::format("pools a value with {} axes, and Keras only pools 2 to 4; reshape it", rank()));
    refuse(fmt::format("is of kind {}, which cannot be written as a Keras layer; write another kind of file",
                       quoted_text(layer_.kind)));
  }

  Json options_for_keras(const LayerRow& row) const {
    Json config = Json::object();
    for (const LayerOption& option : row.options) {
      if (option.is_silent && member(layer_.config, option.holdfast_name()).is_null()) continue;
      Json value = option_for_keras(row, option);
      // Null is a value of Keras that most options show. Those that are silent are left out instead.
      if (!value.is_null() || !is_silent_without(row, option)) config[std::string(option.keras)] = std::move(value);
    }
    return config;
  }

  KerasObject table_layer(const LayerRow& row) const {
    if (!member(layer_.config, "rotary_max_wavelength").is_null()) {
      refuse(
          "turns queries and keys by their position (.rotary), and Keras's attention does not; write another kind "
          "of file");
    }
    Json config = options_for_keras(row);
    if (row.has_data_format) config["data_format"] = "channels_last";
    KerasObject object = layer(std::string(row.keras), std::move(config), row.takes_list, row.takes_trainable);
    name_arguments(row, object);
    return object;
  }

  // Some inputs of Holdfast are named arguments in Keras, and some options are arguments of a call.
  void name_arguments(const LayerRow& row, KerasObject& object) const {
    for (const std::string_view call_flag : row.call_flags) {
      if (flag_member(layer_.config, call_flag, false)) object.named_arguments[std::string(call_flag)] = true;
    }
    if (row.call_values.empty()) return;
    std::size_t masks = 0;
    for (const CallValue& value : row.call_values) {
      if (!value.flag.empty() && flag_member(layer_.config, value.flag, false)) ++masks;
    }
    if (masks >= inputs_.size()) refuse("lacks inputs that its options ask for; use another file");
    std::size_t values = inputs_.size() - masks;
    const bool is_attention = !row.call_flags.empty();
    for (const CallValue& value : row.call_values) {
      const std::string key(value.keras);
      if (value.flag.empty()) {
        // All but the sequence.
        if (values > 1) object.named_arguments[key] = Json(values - 1, nullptr);
        values = 1;
      } else if (flag_member(layer_.config, value.flag, false)) {
        // Keras's plain attentions take a mask of the queries, too.
        object.named_arguments[key] = value.is_list ? Json::array({false, nullptr}) : Json();
      }
    }
    object.arguments = Json(values, nullptr);
    // Keras has no shorter form for what is query and value at once.
    if (is_attention && values == 1) object.arguments.push_back({{"input", 0}});
    if (row.takes_list) object.arguments = Json::array({object.arguments});
  }

  KerasObject bidirectional() const {
    const std::string kind = text_member(layer_.config, "layer");
    const LayerRow* inner = kind == "LSTM" || kind == "GRU" || kind == "SimpleRNN" ? row_of_kind(kind, 0) : nullptr;
    if (inner == nullptr) refuse(fmt::format("repeats a layer {}, which Keras does not have", quoted_text(kind)));
    Json config = {{"merge_mode", member(layer_.config, "merge_mode")}};
    for (const bool is_backward : {false, true}) {
      Json options = options_for_keras(*inner);
      options["go_backwards"] = is_backward;
      options.update({{"name", fmt::format("{}_{}", is_backward ? "backward" : "forward", name_)},
                      {"dtype", "float32"},
                      {"trainable", !layer_.is_frozen}});
      config[is_backward ? "backward_layer" : "layer"] = keras_object("keras.layers", kind, std::move(options));
    }
    KerasObject object = layer("Bidirectional", std::move(config));
    name_arguments(row(), object);
    return object;
  }

  KerasObject layer(const std::string& class_name, Json config, bool takes_list = false,
                    bool takes_trainable = true) const {
    // Keras's reader takes a missing dtype for the global policy of the program that loads the file, which may be
    // another one.
    config.update({{"name", name_}, {"dtype", "float32"}});
    if (takes_trainable) config["trainable"] = !layer_.is_frozen;
    Json arguments(inputs_.size(), nullptr);
    // Layers that merge take one argument, a list of values.
    if (takes_list) arguments = Json::array({arguments});
    return {.object = keras_object("keras.layers", class_name, std::move(config)), .arguments = std::move(arguments)};
  }

  // Files for Keras keep the text that they had before there were constraints, and regularizers of most layers.
  static bool is_silent_without(const LayerRow& row, const LayerOption& option) {
    if (option.form == OptionForm::constraint || option.form == OptionForm::interpolation) return true;
    if (option.form == OptionForm::initializer && option.is_left_out) return true;
    const bool is_convolution = row.kind.starts_with("Conv") && !row.kind.ends_with("Transpose");
    return option.form == OptionForm::regularizer && row.kind != "Dense" && !is_convolution;
  }

  Json option_for_keras(const LayerRow& row, const LayerOption& option) const {
    const std::string key(option.holdfast_name());
    const Json& value = member(layer_.config, key);
    // Missing are only options that files leave out where they have the value of Keras's default.
    const Json otherwise = option.otherwise == nullptr ? Json() : Json::parse(option.otherwise);
    switch (option.form) {
      case OptionForm::last_axis:
        // Holdfast has such an option for one kind only.
        if (!value.is_null() && value != -1 && value != static_cast<std::int64_t>(rank()) - 1) {
          refuse(fmt::format("has the {} {}, and only the last one can be written for Keras", key, value.dump()));
        }
        return -1;
      case OptionForm::last_axes:
        return value.is_null() ? Json(-1) : keras_axes(value, key);
      case OptionForm::interpolation:
        return value;
      case OptionForm::axis:
        return keras_axis(value, key, rank());
      case OptionForm::axes:
        return keras_axes(value, key);
      case OptionForm::two_axes:
        return keras_two_axes(value, key);
      case OptionForm::margins:
        return margins(value, key, row.positions);
      case OptionForm::limit:
        return value.is_array() && value.size() == 1 ? value[0] : Json();
      // Weights in Holdfast, and so arrays of the file: Keras reads them as variables where the option is null.
      case OptionForm::statistics:
        return nullptr;
      case OptionForm::letters:
        return value == "" ? Json() : value;
      case OptionForm::count_or_none:
        return value == 0 ? Json() : value;
      case OptionForm::partial_shape:
        return with_null_for_free(value);
      case OptionForm::initializer:
        if (value.is_string()) return keras_initializer(value.get<std::string>());
        return option.is_left_out ? Json() : otherwise;
      case OptionForm::regularizer:
        return limit_of_weights(key, value, keras_regularizer);
      case OptionForm::constraint:
        return limit_of_weights(key, value, keras_constraint);
      case OptionForm::activation:
        return keras_activation(value);
      case OptionForm::cell_activation:
        if (!value.is_null() && !is_cell_activation(value)) {
          refuse(fmt::format("has the {} {}, which recurrent layers do not have; use another savepoint", key,
                             value.dump()));
        }
        return value.is_null() ? otherwise : value;
      case OptionForm::fraction:
      case OptionForm::at_least_0:
        // Holdfast has larger ones for some kinds.
        if (!fits_form(option.form, value)) {
          refuse(fmt::format("has the {} {}, which Keras does not accept; choose another one", key, value.dump()));
        }
        return value;
      default:
        return value.is_null() ? otherwise : value;
    }
  }

  static Json with_null_for_free(const Json& extents) {
    Json list = Json::array();
    for (const Json& extent : extents) list.push_back(extent == -1 ? Json() : extent);
    return list;
  }

  // A regularizer or a constraint, which are texts.
  Json limit_of_weights(const std::string& key, const Json& value,
                        std::optional<Json> (*for_keras)(std::string_view text)) const {
    if (value.is_null()) return value;
    const auto object = value.is_string() ? for_keras(value.get<std::string>()) : std::nullopt;
    if (!object) refuse(fmt::format("has the {} {}, which Keras does not have", key, value.dump()));
    return *object;
  }

  Json keras_activation(const Json& value) const {
    if (value.is_null()) return "linear";
    const auto name = value.is_string() ? keras_activation_name(value.get<std::string>()) : std::nullopt;
    // Those with numbers of their own have become layers of their own.
    if (!name) refuse(fmt::format("has the activation {}, which has no counterpart in Keras's files", value.dump()));
    return *name;
  }

  KerasObject activation_with_numbers(const std::string& text) const {
    const auto activation = keras_activation_object(text);
    if (!activation) {
      refuse(fmt::format("is the activation {}, which has no counterpart in Keras's files", quoted_text(text)));
    }
    if (activation->module == std::string_view("keras.layers")) {
      return layer(activation->class_name, activation->config);
    }
    return function_of_one(activation->module, activation->class_name, activation->config);
  }

  KerasObject merging_layer(const std::string& class_name) const { return layer(class_name, Json::object(), true); }

  KerasObject function(const char* module, const std::string& class_name, Json config, Json arguments) const {
    config["name"] = name_;
    Json object = keras_object(module, class_name, std::move(config));
    // Functions have their class here, and layers have null.
    object["registered_name"] = class_name;
    return {.object = std::move(object), .arguments = std::move(arguments)};
  }

  KerasObject function_of_one(const char* module, const std::string& class_name, Json config) const {
    return function(module, class_name, std::move(config), Json::array({nullptr}));
  }

  // Asked for by options that depend on a rank. A layer without such an option is
  // written even after one of unknown shape.
  const SampleShape& input_shape() const {
    if (inputs_.empty() || !inputs_.front()) {
      refuse("gets a value whose shape cannot be derived from the graph; write another kind of file");
    }
    return *inputs_.front();
  }

  std::size_t rank() const { return input_shape().size(); }

  // [[top, bottom], [left, right]]; along one axis, [left, right].
  Json margins(const Json& list, const std::string& key, std::size_t positions) const {
    if (!list.is_array() || list.size() != 2 * positions) {
      refuse(fmt::format("lacks the {} numbers of {}; use another file", 2 * positions, key));
    }
    Json pairs = Json::array();
    for (std::size_t place = 0; place < positions; ++place) {
      pairs.push_back(Json::array({list[2 * place], list[2 * place + 1]}));
    }
    return positions == 1 ? pairs[0] : pairs;
  }

  // Keras counts the axis of samples, Holdfast does not.
  std::int64_t keras_axis(const Json& value, const std::string& key, std::size_t rank) const {
    const auto axis = integer_value(value);
    const auto axes = static_cast<std::int64_t>(rank);
    if (!axis || *axis < -axes || *axis >= axes) {
      refuse(fmt::format("has no axis {} among the {} of its input; use another file", key, axes));
    }
    return *axis < 0 ? *axis : *axis + 1;
  }

  // Counted from the first axis, because Keras counts some lists otherwise from the last.
  Json keras_axes(const Json& list, const std::string& key) const {
    Json result = Json::array();
    for (const Json& entry : list.is_array() ? list : Json::array()) {
      const std::int64_t axis = keras_axis(entry, key, rank());
      result.push_back(axis < 0 ? axis + static_cast<std::int64_t>(rank()) + 1 : axis);
    }
    return result;
  }

  Json keras_two_axes(const Json& list, const std::string& key) const {
    const bool fits = list.is_array() && list.size() == 2 && inputs_.size() == 2 && inputs_[0] && inputs_[1];
    if (!fits) refuse(fmt::format("lacks two values of known shapes, or the two {}; use another file", key));
    Json result = Json::array();
    for (std::size_t i = 0; i < 2; ++i) {
      const std::size_t axes = inputs_[i]->size();
      const std::int64_t axis = keras_axis(list[i], key, axes);
      result.push_back(axis < 0 ? axis + static_cast<std::int64_t>(axes) + 1 : axis);
    }
    return result;
  }

  KerasObject concatenation() const {
    return layer("Concatenate", {{"axis", keras_axis(member(layer_.config, "axis"), "axis", rank())}}, true);
  }

  KerasObject operation(const std::string& operation) const {
    if (const OperationName* name = find_operation(kReducingOperations, operation)) return reduction(name->keras);
    if (operation == "concatenate") return concatenation();
    if (operation == "reshape") return layer("Reshape", {{"target_shape", member(layer_.config, "shape")}});
    if (operation == "permute") return permutation();
    if (operation == "pad") return padding();
    if (operation == "slice") return part_of_value();
    if (operation == "cast") return function_of_one("keras.src.ops.core", "Cast", {{"dtype", "float32"}});
    if (operation == "stop_gradient") return function_of_one("keras.src.ops.core", "StopGradient", Json::object());
    const Json& constants = member(layer_.config, "constants");
    const bool has_constants = constants.is_array() && std::any_of(constants.begin(), constants.end(),
                                                                   [](const Json& value) { return !value.is_null(); });
    // A layer takes values alone. With a number among the arguments only the function is left.
    const OperationName* merging = find_operation(kOperationLayers, operation);
    if (merging != nullptr && !has_constants) return merging_layer(merging->keras);
    if (const OperationName* name = find_operation(kActivationFunctions, operation);
        name != nullptr && !has_constants) {
      return layer("Activation", {{"activation", name->keras}});
    }
    // Keras's activation "gelu" is the exact one, so the approximation is a function.
    if (operation == "gelu_tanh" && !has_constants) {
      return function_of_one("keras.src.ops.nn", "Gelu", {{"approximate", true}});
    }
    if (const OperationName* name = find_operation(kElementFunctions, operation)) return elements(*name, constants);
    refuse(
        fmt::format("is the operation {}, which cannot be written for Keras; build the model without it, or write "
                    "another kind of file",
                    quoted_text(operation)));
  }

  // Unlike its layers, Keras's functions align the axes of samples, too.
  // `constants` has one entry for each argument in order: a number, or null for a value. Without it, 1 - x and x - 1
  // would look alike.
  KerasObject elements(const OperationName& name, const Json& constants) const {
    for (const MaybeShape& shape : inputs_) {
      if (!shape || shape->size() != rank()) {
        refuse(
            fmt::format("is the operation {} of values with different numbers of axes, which Keras aligns otherwise; "
                        "reshape one of them",
                        quoted_text(name.holdfast)));
      }
    }
    Json arguments = Json::array();
    std::size_t values = 0;
    for (const Json& constant : constants.is_array() ? constants : Json::array()) {
      arguments.push_back(constant.is_number() ? constant : Json());
      if (!constant.is_number()) ++values;
    }
    if (values != inputs_.size()) refuse("does not say which of its arguments are numbers; use another file");
    return function(name.module, name.keras, Json::object(), std::move(arguments));
  }

  KerasObject reduction(const std::string& class_name) const {
    const Json& range = member(layer_.config, "axes");
    const auto axes = static_cast<std::int64_t>(rank());
    const bool is_pair = range.is_array() && range.size() == 2;
    const std::int64_t begin = is_pair ? integer_value(range[0]).value_or(-1) : -1;
    const std::int64_t end = is_pair ? integer_value(range[1]).value_or(-1) : -1;
    if (begin < 0 || begin >= end || end > axes) {
      refuse("goes over axes that its input does not have; use another file");
    }
    Json list = Json::array();
    // The axis of samples comes first in Keras. Reduced axes stay in Holdfast, hence `keepdims`.
    for (std::int64_t axis = begin; axis < end; ++axis) list.push_back(axis + 1);
    return function_of_one(kNumpyOperations, class_name, {{"axis", std::move(list)}, {"keepdims", true}});
  }

  // Holdfast counts axes of a sample from 0 here, and Permute of Keras from 1, without that of the samples.
  KerasObject permutation() const {
    Json dims = Json::array();
    const Json& order = member(layer_.config, "order");
    for (const Json& axis : order.is_array() ? order : Json::array()) {
      const std::int64_t place = integer_value(axis).value_or(-1);
      if (place < 0 || place >= static_cast<std::int64_t>(rank())) {
        refuse("permutes axes that its input does not have; use another file");
      }
      dims.push_back(place + 1);
    }
    return layer("Permute", {{"dims", std::move(dims)}});
  }

  // What stands between the brackets in Python, as Keras serialises it: a slice for
  // each axis up to the one that is cut.
  KerasObject part_of_value() const {
    const auto range = [](const Json& begin, const Json& end) -> Json {
      return {{"class_name", "__slice__"}, {"config", {{"start", begin}, {"stop", end}, {"step", nullptr}}}};
    };
    const auto axis = keras_axis(member(layer_.config, "axis"), "axis", rank());
    // All samples, and all elements of the axes before this one.
    std::vector<Json> index(static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank()) + 1 : axis),
                            range(nullptr, nullptr));
    index.push_back(range(member(layer_.config, "begin"), member(layer_.config, "end")));
    return function(kNumpyOperations, "GetItem", Json::object(), Json::array({nullptr, index}));
  }

  KerasObject padding() const {
    const auto axis = keras_axis(member(layer_.config, "axis"), "axis", rank());
    Json widths = Json::array();
    for (std::int64_t i = 0; i <= static_cast<std::int64_t>(rank()); ++i) {
      // Keras's function pads every axis, with that of the samples, and takes two zeros for the others.
      const bool is_padded = i == (axis < 0 ? axis + static_cast<std::int64_t>(rank()) + 1 : axis);
      widths.push_back(is_padded ? Json::array({member(layer_.config, "before"), member(layer_.config, "after")})
                                 : Json::array({0, 0}));
    }
    return function_of_one(kNumpyOperations, "Pad", {{"pad_width", std::move(widths)}, {"mode", "constant"}});
  }

  const ModelGraphLayer& layer_;
  const std::string& name_;
  const std::span<const MaybeShape> inputs_;
};

}  // namespace

Json keras_object(const std::string& module, const std::string& class_name, Json config) {
  return {{"module", module}, {"class_name", class_name}, {"config", std::move(config)}, {"registered_name", nullptr}};
}

KerasObject keras_layer_object(const ModelGraphLayer& layer, const std::string& name,
                               std::span<const MaybeShape> inputs) {
  return LayerWriter(layer, name, inputs).write();
}

}  // namespace holdfast::format
