// Holdfast's options have Keras's names and meanings, so most of them are copied. An operation becomes a layer where
// Keras has one, because layers align shapes as Holdfast does: at the last axes of a sample. See
// docs/decisions/exchange.md.

#include "keras/keras_layer_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "bytes/byte_source.h"

namespace holdfast::format {
namespace {

constexpr const char* kNumpyOperations = "keras.src.ops.numpy";

// Kinds that have the same name, and options of the same names, in Keras.
constexpr std::array<std::string_view, 13> kSameKinds = {
    "Dense",           "Conv2D",  "MaxPooling2D",       "AveragePooling2D",
    "Flatten",         "Dropout", "BatchNormalization", "Activation",
    "Reshape",         "Permute", "RepeatVector",       "LayerNormalization",
    "RMSNormalization"};
constexpr std::array<std::string_view, 6> kMergingLayers = {"Add",     "Subtract", "Multiply",
                                                            "Average", "Maximum",  "Minimum"};
constexpr std::array<std::string_view, 7> kImageKinds = {"Conv2D",        "MaxPooling2D", "AveragePooling2D", "Flatten",
                                                         "ZeroPadding2D", "Cropping2D",   "UpSampling2D"};

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

template <std::size_t kCount>
bool is_among(const std::array<std::string_view, kCount>& kinds, std::string_view kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// Only "normal(0.05)" has another name in Keras.
Json keras_initializer(const std::string& name) {
  if (!name.starts_with("normal(")) return name;
  double deviation = 0;
  // from_chars() does not look at the locale.
  std::from_chars(name.data() + std::string_view("normal(").size(), name.data() + name.size(), deviation);
  return keras_object("keras.initializers", "RandomNormal", {{"mean", 0.0}, {"stddev", deviation}, {"seed", nullptr}});
}

class LayerWriter {
 public:
  LayerWriter(const ModelGraphLayer& layer, const std::string& name, std::span<const MaybeShape> inputs)
      : layer_(layer), name_(name), inputs_(inputs) {}

  KerasObject write() const {
    const std::string& kind = layer_.kind;
    if (is_among(kSameKinds, kind)) return layer(kind, same_options());
    if (is_among(kMergingLayers, kind)) return merging_layer(kind);
    if (kind == "Concatenate") return concatenation();
    if (kind == "GlobalAveragePooling") return global_pooling("GlobalAveragePooling");
    if (kind == "GlobalMaxPooling") return global_pooling("GlobalMaxPooling");
    if (kind == "ZeroPadding2D") return layer(kind, {{"padding", margins("padding")}});
    if (kind == "Cropping2D") return layer(kind, {{"cropping", margins("cropping")}});
    if (kind == "UpSampling2D")
      return layer(kind, {{"size", member(layer_.config, "size")}, {"interpolation", "nearest"}});
    if (kind == "Rescaling") return layer(kind, layer_.config);
    if (kind == "Operation") return operation(text_member(layer_.config, "operation"));
    refuse(fmt::format("is of kind {}, which cannot be written as a Keras layer; write another kind of file",
                       quoted_text(kind)));
  }

 private:
  [[noreturn]] void refuse(const std::string& problem) const {
    refuse_savepoint(fmt::format("its layer {} {}", quoted_text(layer_.name), problem));
  }

  KerasObject layer(const std::string& class_name, Json config, bool takes_list = false) const {
    config.update({{"name", name_}, {"trainable", true}, {"dtype", "float32"}});
    if (is_among(kImageKinds, class_name)) config["data_format"] = "channels_last";
    Json arguments(inputs_.size(), nullptr);
    // Layers that merge take one argument, a list of values.
    if (takes_list) arguments = Json::array({arguments});
    return {keras_object("keras.layers", class_name, std::move(config)), std::move(arguments)};
  }

  KerasObject merging_layer(const std::string& class_name) const { return layer(class_name, Json::object(), true); }

  KerasObject function(const char* module, const std::string& class_name, Json config, Json arguments) const {
    config["name"] = name_;
    Json object = keras_object(module, class_name, std::move(config));
    // Functions have their class here, and layers have null.
    object["registered_name"] = class_name;
    return {std::move(object), std::move(arguments)};
  }

  KerasObject function_of_one(const char* module, const std::string& class_name, Json config) const {
    return function(module, class_name, std::move(config), Json::array({nullptr}));
  }

  Json same_options() const {
    // Only initializers are written in another form.
    Json config = layer_.config;
    for (const char* key : {"kernel_initializer", "bias_initializer"}) {
      if (config.contains(key)) config[key] = keras_initializer(text_member(config, key));
    }
    // Holdfast has no such options, since they are always so.
    if (layer_.kind == "BatchNormalization") config.update({{"axis", -1}, {"center", true}, {"scale", true}});
    if (layer_.kind == "LayerNormalization" || layer_.kind == "RMSNormalization") config["axis"] = -1;
    return config;
  }

  const SampleShape& input_shape() const {
    if (inputs_.empty() || !inputs_.front()) {
      refuse("gets a value whose shape cannot be derived from the graph; write another kind of file");
    }
    return *inputs_.front();
  }

  std::size_t rank() const { return input_shape().size(); }

  KerasObject global_pooling(const std::string& kind) const {
    if (rank() < 2 || rank() > 4) {
      refuse(fmt::format("pools a value with {} axes, and Keras only pools 2 to 4; reshape it", rank()));
    }
    // One kind here stands for three classes, which differ in the number of axes.
    const std::string class_name = fmt::format("{}{}D", kind, rank() - 1);
    return layer(class_name,
                 {{"keepdims", flag_member(layer_.config, "keepdims", false)}, {"data_format", "channels_last"}});
  }

  Json margins(const char* key) const {
    const Json& list = member(layer_.config, key);
    if (!list.is_array() || list.size() != 4)
      refuse(fmt::format("lacks the four numbers of {}; use another file", key));
    // [top, bottom] and [left, right].
    return Json::array({Json::array({list[0], list[1]}), Json::array({list[2], list[3]})});
  }

  // Keras counts the axis of samples, Holdfast does not.
  std::int64_t keras_axis(const char* key) const {
    const auto axis = integer_value(member(layer_.config, key));
    const auto axes = static_cast<std::int64_t>(rank());
    if (!axis || *axis < -axes || *axis >= axes) {
      refuse(fmt::format("has no axis {} among the {} of its input; use another file", key, axes));
    }
    return *axis < 0 ? *axis : *axis + 1;
  }

  KerasObject concatenation() const { return layer("Concatenate", {{"axis", keras_axis("axis")}}, true); }

  KerasObject operation(const std::string& operation) const {
    if (const OperationName* name = find_operation(kReducingOperations, operation)) return reduction(name->keras);
    if (operation == "concatenate") return concatenation();
    if (operation == "reshape") return layer("Reshape", {{"target_shape", member(layer_.config, "shape")}});
    if (operation == "permute") return permutation();
    if (operation == "pad") return padding();
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

  KerasObject padding() const {
    const auto axis = keras_axis("axis");
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
