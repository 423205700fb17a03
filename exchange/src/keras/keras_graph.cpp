// Translates the graph and the configuration in a savepoint's metadata to Keras's configuration of the same model.
// Holdfast's options have Keras's names and meanings, so most of it is copied. An optimizer, loss or schedule that
// Keras lacks is left out; a layer that it lacks is an error.

#include "keras/keras_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <span>

#include "bytes/byte_source.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

[[noreturn]] void refuse_savepoint(const std::string& problem) {
  throw Error(ErrorCode::unsupported, "the savepoint cannot become a Keras model: " + problem);
}

// An object as Keras serialises it.
Json keras_object(const std::string& module, const std::string& class_name, Json config) {
  return {{"module", module}, {"class_name", class_name}, {"config", std::move(config)}, {"registered_name", nullptr}};
}

// Only "normal(0.05)" has another name in Keras.
Json initializer(const std::string& name) {
  if (!name.starts_with("normal(")) return name;
  double deviation = 0;
  std::from_chars(name.data() + std::string_view("normal(").size(), name.data() + name.size(), deviation);
  return keras_object("keras.initializers", "RandomNormal", {{"mean", 0.0}, {"stddev", deviation}, {"seed", nullptr}});
}

bool has_images(const std::string& kind) {
  return kind == "Conv2D" || kind == "MaxPooling2D" || kind == "AveragePooling2D" || kind == "Flatten";
}

// Holdfast's options have Keras's names and meanings. Keras's other options keep their defaults.
Json layer_config(const Json& layer) {
  const std::string kind = text_member(layer, "kind");
  const std::string name = text_member(layer, "name");
  constexpr std::array kKinds = {"Dense",   "Conv2D",  "MaxPooling2D",       "AveragePooling2D",
                                 "Flatten", "Dropout", "BatchNormalization", "Activation"};
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) {
    refuse_savepoint(
        fmt::format("its layer {} is of kind {}, which cannot be written as a Keras layer; write another kind of file",
                    quoted_text(name), quoted_text(kind)));
  }
  if (name.empty() || name.find('/') != std::string::npos) {
    refuse_savepoint(fmt::format("Keras does not accept the layer name {}; rename the layer", quoted_text(name)));
  }
  Json config = member(layer, "config");
  if (!config.is_object()) config = Json::object();
  for (const char* key : {"kernel_initializer", "bias_initializer"}) {
    if (config.contains(key)) config[key] = initializer(text_member(config, key));
  }
  config.update({{"name", name}, {"trainable", true}, {"dtype", "float32"}});
  if (has_images(kind)) config["data_format"] = "channels_last";
  if (kind == "BatchNormalization") config.update({{"axis", -1}, {"center", true}, {"scale", true}});
  return keras_object("keras.layers", kind, std::move(config));
}

Json batch_shape(const Json& sample) {
  Json shape = Json::array({nullptr});
  if (!sample.is_array()) refuse_savepoint("its graph has no input shape; give a savepoint of a Sequential");
  shape.insert(shape.end(), sample.begin(), sample.end());
  return shape;
}

// Keras requires unique names of layers, and the input layer is our addition.
std::string unused_name(const Json& layers, std::string name) {
  std::set<std::string> taken;
  for (const Json& layer : layers) taken.insert(text_member(layer, "name"));
  while (taken.contains(name)) name += '_';
  return name;
}

const Json& graph_of(const Json& metadata) {
  const Json& graph = member(metadata, "graph");
  if (text_member(graph, "format") != "holdfast.sequential" || member(graph, "version") != 1) {
    refuse_savepoint("its graph is not of format holdfast.sequential 1; give a savepoint of a Sequential");
  }
  if (!member(graph, "layers").is_array())
    refuse_savepoint("its graph has no list of layers; give a savepoint of a Sequential");
  return graph;
}

// Turns {"kind": "...", options} into a Keras object with the same options.
Json renamed(const Json& configuration, const std::string& module, const std::string& class_name) {
  Json config = configuration;
  config.erase("kind");
  return keras_object(module, class_name, std::move(config));
}

struct ClassName {
  std::string_view holdfast;
  const char* keras;
};

std::optional<Json> object_of_kind(const Json& configuration, const std::string& module,
                                   std::span<const ClassName> classes) {
  const std::string kind = text_member(configuration, "kind");
  for (const ClassName& name : classes) {
    if (name.holdfast == kind) return renamed(configuration, module, name.keras);
  }
  return std::nullopt;
}

constexpr std::array kOptimizers = {ClassName{"sgd", "SGD"}, ClassName{"adam", "Adam"}, ClassName{"adamw", "AdamW"}};
constexpr std::array kLosses = {ClassName{"binary_crossentropy", "BinaryCrossentropy"},
                                ClassName{"categorical_crossentropy", "CategoricalCrossentropy"},
                                ClassName{"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy"},
                                ClassName{"mean_squared_error", "MeanSquaredError"}};
constexpr std::array kMetrics = {ClassName{"binary_accuracy", "BinaryAccuracy"},
                                 ClassName{"categorical_accuracy", "CategoricalAccuracy"},
                                 ClassName{"sparse_categorical_accuracy", "SparseCategoricalAccuracy"},
                                 ClassName{"mean_absolute_error", "MeanAbsoluteError"}};

constexpr std::array kSchedules = {
    ClassName{"cosine_decay", "CosineDecay"}, ClassName{"exponential_decay", "ExponentialDecay"},
    ClassName{"piecewise_constant_decay", "PiecewiseConstantDecay"}, ClassName{"polynomial_decay", "PolynomialDecay"}};
// Options that have other names in Keras.
constexpr std::array kClippings = {ClassName{"clip_value", "clipvalue"}, ClassName{"clip_norm", "clipnorm"},
                                   ClassName{"global_clip_norm", "global_clipnorm"}};

// Empty if Keras lacks the optimizer or its schedule.
std::optional<Json> optimizer_object(const Json& configuration) {
  auto optimizer = object_of_kind(configuration, "keras.optimizers", kOptimizers);
  if (!optimizer) return std::nullopt;
  Json& config = (*optimizer)["config"];
  const Json& rate = member(configuration, "learning_rate");
  if (rate.is_object()) {
    const auto schedule = object_of_kind(rate, "keras.optimizers.schedules", kSchedules);
    if (!schedule) return std::nullopt;
    config["learning_rate"] = *schedule;
  }
  for (const ClassName& name : kClippings) {
    if (!config.contains(name.holdfast)) continue;
    config[name.keras] = config[name.holdfast];
    config.erase(config.find(name.holdfast));
  }
  return optimizer;
}

// Null unless Keras has both the optimizer and the loss.
Json compile_config(const Json& configuration) {
  const auto optimizer = optimizer_object(member(configuration, "optimizer"));
  const auto loss = object_of_kind(member(configuration, "loss"), "keras.losses", kLosses);
  if (!optimizer || !loss) return nullptr;
  Json metrics = Json::array();
  const Json& list = member(configuration, "metrics");
  for (const Json& metric : list.is_array() ? list : Json::array()) {
    if (auto object = object_of_kind(metric, "keras.metrics", kMetrics)) metrics.push_back(std::move(*object));
  }
  return {{"optimizer", *optimizer},     {"loss", *loss},
          {"loss_weights", nullptr},     {"metrics", std::move(metrics)},
          {"weighted_metrics", nullptr}, {"run_eagerly", false},
          {"steps_per_execution", 1},    {"jit_compile", false}};
}

std::uint64_t count_member(const Json& list, std::size_t index) {
  const bool is_there = list.is_array() && index < list.size() && list[index].is_number_unsigned();
  return is_there ? list[index].get<std::uint64_t>() : 0;
}

// The number of windows that fit along an axis; 0 if none does.
std::uint64_t windows(std::uint64_t extent, std::uint64_t size, std::uint64_t stride, bool is_padded) {
  if (size == 0 || stride == 0 || extent == 0) return 0;
  if (is_padded) return (extent - 1) / stride + 1;
  return extent < size ? 0 : (extent - size) / stride + 1;
}

// Follows the size of an image through one layer.
void apply(const Json& layer, std::array<std::uint64_t, 3>& image) {
  const std::string kind = text_member(layer, "kind");
  const Json& config = member(layer, "config");
  const bool is_convolution = kind == "Conv2D";
  if (is_convolution || kind == "MaxPooling2D" || kind == "AveragePooling2D") {
    const Json& size = member(config, is_convolution ? "kernel_size" : "pool_size");
    for (std::size_t axis = 0; axis < 2; ++axis) {
      image[axis] = windows(image[axis], count_member(size, axis), count_member(member(config, "strides"), axis),
                            text_member(config, "padding") == "same");
    }
    if (is_convolution) image[2] = count_member(Json::array({member(config, "filters")}), 0);
  } else if (kind == "Dense") {
    image[2] = count_member(Json::array({member(config, "units")}), 0);
  } else if (kind == "Flatten") {
    image = {};
  }
}

}  // namespace

bool is_savepoint(const Json& metadata) {
  return text_member(metadata, "kind") == "savepoint";
}

Json keras_config_of_savepoint(const Json& metadata) {
  const Json& graph = graph_of(metadata);
  const Json& layers = member(graph, "layers");
  Json list = Json::array();
  list.push_back(keras_object("keras.layers", "InputLayer",
                              {{"batch_shape", batch_shape(member(graph, "input_shape"))},
                               {"dtype", "float32"},
                               {"name", unused_name(layers, "input_layer")}}));
  for (const Json& layer : layers) list.push_back(layer_config(layer));
  Json config =
      keras_object("keras", "Sequential",
                   {{"name", "sequential"}, {"trainable", true}, {"dtype", "float32"}, {"layers", std::move(list)}});
  Json compile = compile_config(member(metadata, "configuration"));
  if (compile.is_object()) config["compile_config"] = std::move(compile);
  return config;
}

std::vector<SlotName> optimizer_slots(const Json& metadata) {
  const Json& optimizer = member(member(metadata, "configuration"), "optimizer");
  const std::string kind = text_member(optimizer, "kind");
  if (kind == "adam" || kind == "adamw") return {{"m", "momentum"}, {"v", "velocity"}};
  const Json& momentum = member(optimizer, "momentum");
  if (kind == "sgd" && momentum.is_number() && momentum.get<double>() > 0) return {{"momentum", "momentum"}};
  return {};
}

std::array<std::uint64_t, 3> image_before(const Json& metadata, const std::string& name) {
  const Json& graph = graph_of(metadata);
  const Json& input = member(graph, "input_shape");
  std::array<std::uint64_t, 3> image{};
  if (input.is_array() && input.size() == 3) {
    for (std::size_t axis = 0; axis < 3; ++axis) image[axis] = count_member(input, axis);
  }
  for (const Json& layer : member(graph, "layers")) {
    if (text_member(layer, "name") == name) return image;
    apply(layer, image);
  }
  return {};
}

}  // namespace holdfast::format
