// A model of Keras is completed before its weights are compared with those of a savepoint. So the code that matches and
// moves them needs no rules for single layers.

#include "keras/keras_completion.h"

#include <algorithm>
#include <cstring>

#include "bytes/array_prefixes.h"
#include "keras_files/keras_model.h"
#include "keras_layers/keras_layer_reader.h"

namespace holdfast::format {
namespace {

NamedArray constant_array(const ConstantWeight& weight) {
  NamedArray array{.name = kModelPrefix + weight.name, .dtype = DType::f32, .shape = {}, .bytes = {}};
  std::size_t elements = 1;
  for (const std::int64_t extent : weight.shape) {
    array.shape.push_back(static_cast<std::uint64_t>(extent));
    elements *= static_cast<std::size_t>(extent);
  }
  // A weight may have one number for all its elements, and its array has each of them.
  std::vector<float> values = weight.values;
  if (values.size() == 1) values.resize(elements, values.front());
  array.bytes.resize(elements * sizeof(float));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

void complete_layers(Json& config, std::size_t depth) {
  // A limit, because the file is not trusted and this function calls itself.
  constexpr std::size_t kMaxNesting = 64;
  if (depth > kMaxNesting || !layers_of_config(config).is_array()) return;
  Json& options = config["config"];
  // Some files have the list of layers in place of the options, and others as a member of them.
  for (Json& layer : options.is_array() ? options : options["layers"]) {
    const std::string class_name = text_member(layer, "class_name");
    complete_layers(layer, depth + 1);
    if (!member(layer, "config").is_object()) continue;
    const bool is_rescaling = becomes_normalization(class_name, member(layer, "config"));
    if (class_name != "Normalization" && !is_rescaling) continue;
    layer["class_name"] = "Normalization";
    // Without statistics as options, Keras's layer keeps them as weights, as that of Holdfast does.
    layer["config"].update({{"mean", nullptr}, {"variance", nullptr}});
  }
}

}  // namespace

std::vector<NamedArray> completing_arrays(const KerasFunctional& model, const ArraySet& keras) {
  std::vector<NamedArray> arrays;
  for (const ConstantWeight& weight : model.weights) arrays.push_back(constant_array(weight));
  for (const std::string& scalar : scalar_arrays(model.graph)) {
    const std::string name = kModelPrefix + scalar;
    const auto found = std::find_if(keras.arrays.begin(), keras.arrays.end(),
                                    [&](const NamedArray& array) { return array.name == name; });
    // One that is missing, or has axes, is left as it is. The comparison of weights, which follows, judges it.
    if (found == keras.arrays.end() || !found->shape.empty()) continue;
    arrays.push_back(*found);
    arrays.back().shape = {1};
  }
  return arrays;
}

Json completed_config(Json config) {
  complete_layers(config, 0);
  return config;
}

std::vector<std::string> scalar_arrays(const ModelGraph& graph) {
  std::vector<std::string> names;
  for (const ModelGraphLayer& layer : graph.layers) {
    const Json& axis = member(layer.config, "axis");
    // Without axes there is one mean for everything. It is a scalar in Keras.
    if (layer.kind == "Normalization" && axis.is_array() && axis.empty()) {
      names.insert(names.end(), {layer.name + "/mean", layer.name + "/variance"});
    }
    if (layer.kind == "Attention")
      names.insert(names.end(), {layer.name + "/scale", layer.name + "/concat_score_weight"});
  }
  return names;
}

}  // namespace holdfast::format
