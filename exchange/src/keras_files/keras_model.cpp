// Keras's files do not say which variable is which: position and group follow from the model's configuration. This is
// Keras's own walk over layers, containers and wrappers. The configuration comes from anybody, so nesting, layers and
// names are bounded.

#include "keras_files/keras_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "keras_files/keras_path.h"

namespace holdfast::format {
namespace {

// Limits of models in models and of wrappers in wrappers.
constexpr std::size_t kMaxNesting = 64;
constexpr std::size_t kMaxLayers = 100'000;
constexpr std::size_t kMaxPathBytes = std::size_t{32} << 20;

// Returns a model's list of layers; null for a class that is not a Sequential or functional model.
const Json& layers_of_class(std::string_view class_name, const Json& options) {
  static const Json nothing;
  if (class_name != "Sequential" && class_name != "Functional" && class_name != "Model") return nothing;
  // Keras 1 and early Keras 2 wrote a Sequential's layers as a bare list.
  const Json& layers = options.is_array() ? options : member(options, "layers");
  return layers.is_array() ? layers : nothing;
}

// Besides layers, a functional model lists operations such as a plain "+".
bool is_operation(const Json& layer) {
  const std::string module = text_member(layer, "module");
  return module.starts_with("keras.src.ops") || module.starts_with("keras.ops");
}

// Builds the layers recursively, within the limits above.
class Builder {
 public:
  explicit Builder(const std::string& label) : label_(label) {}

  KerasLayer build(const Json& config, const KerasLayer& parent, const std::string& array_part,
                   const std::string& weights_part) {
    return build(text_member(config, "class_name"), member(config, "config"), parent, array_part, weights_part);
  }

 private:
  KerasLayer build(const std::string& class_name, const Json& options, const KerasLayer& parent,
                   const std::string& array_part, const std::string& weights_part) {
    if (++nesting_ > kMaxNesting) refuse(fmt::format("nests layers deeper than {} levels", kMaxNesting));
    KerasLayer layer;
    layer.class_name = class_name;
    layer.array_path = join_path(parent.array_path, array_part);
    layer.weights_path = join_path(parent.weights_path, weights_part);
    count(layer);
    // A frozen container freezes everything in it.
    layer.is_trainable = parent.is_trainable && flag_member(options, "trainable", true);
    layer.data_format = text_member(options, "data_format");
    // A container owns no variables itself. A layer of an unknown class may own any, so is_known stays false.
    if (const Json& layers = layers_of_class(class_name, options); layers.is_array()) {
      layer.is_known = true;
      add_container(layer, layers, "layers", class_name == "Sequential");
    } else if (auto variables = keras_variables(class_name, options)) {
      layer.variables = std::move(*variables);
      layer.is_known = add_parts(layer, options);
    }
    --nesting_;
    return layer;
  }

  [[noreturn]] void refuse(const std::string& problem) const { refuse_keras_model(label_, problem); }

  // Every layer repeats the names of the layers around it, and a wrapper can contain its layer twice. So a small text
  // could demand any amount of memory.
  void count(const KerasLayer& layer) {
    path_bytes_ += layer.array_path.size() + layer.weights_path.size();
    if (++layers_ > kMaxLayers || path_bytes_ > kMaxPathBytes) {
      refuse(fmt::format("has more than {} layers, or names of more than {} bytes", kMaxLayers, kMaxPathBytes));
    }
  }

  // Keras names the groups of a list after the classes of its layers, and numbers equal ones.
  void add_container(KerasLayer& owner, const Json& list, const std::string& key, bool skips_inputs) {
    std::map<std::string, std::size_t> used;
    std::set<std::string> names;
    for (const Json& entry : list) {
      const std::string class_name = text_member(entry, "class_name");
      if (is_operation(entry) || (skips_inputs && class_name == "InputLayer")) continue;
      std::string group = keras_snake_case(class_name);
      if (group.empty()) refuse("has a layer without a class");
      // The first one has no number: "dense", "dense_1", as Keras counts them.
      const std::size_t number = used[group]++;
      if (number > 0) group += "_" + std::to_string(number);
      std::string name = layer_name(entry);
      // Array names must be unique, so a layer without a name of its own, or with a used one, is named after its
      // group.
      if (name.empty() || !names.insert(name).second) name = group;
      owner.children.push_back(build(entry, owner, name, key + "/" + group));
    }
  }

  // Returns true if all parts are known.
  bool add_parts(KerasLayer& layer, const Json& options) {
    const std::string& kind = layer.class_name;
    // The configuration of such a layer is that of its cell, too.
    if (kind == "LSTM" || kind == "GRU" || kind == "SimpleRNN") return add_part(layer, kind + "Cell", "cell", options);
    if (kind.starts_with("ConvLSTM") && kind != "ConvLSTMCell") {
      return add_part(layer, "ConvLSTMCell", "cell", options);
    }
    if (kind == "RNN") return add_part(layer, member(options, "cell"), "cell");
    if (kind == "TimeDistributed") return add_part(layer, member(options, "layer"), "layer");
    if (kind == "Bidirectional") return add_directions(layer, options);
    if (kind == "MultiHeadAttention") return add_projections(layer, options, "");
    if (kind == "GroupQueryAttention") return add_projections(layer, options, "_");
    return true;
  }

  bool add_part(KerasLayer& layer, const std::string& class_name, const std::string& key, const Json& options) {
    layer.children.push_back(build(class_name, options, layer, key, key));
    return true;
  }

  bool add_part(KerasLayer& layer, const Json& config, const std::string& key) {
    return config.is_object() && add_part(layer, text_member(config, "class_name"), key, member(config, "config"));
  }

  // A Bidirectional layer without a configuration for its backward layer uses the forward one for both.
  bool add_directions(KerasLayer& layer, const Json& options) {
    const Json& forward = member(options, "layer");
    const Json& backward = member(options, "backward_layer");
    return add_part(layer, forward, "forward_layer") &&
           add_part(layer, backward.is_object() ? backward : forward, "backward_layer");
  }

  // Attention has four projections with the same option.
  bool add_projections(KerasLayer& layer, const Json& options, const std::string& prefix) {
    const Json projection = {{"use_bias", flag_member(options, "use_bias", true)}};
    for (const char* key : {"query_dense", "key_dense", "value_dense", "output_dense"}) {
      add_part(layer, "EinsumDense", prefix + key, projection);
    }
    return true;
  }

  const std::string& label_;
  std::size_t nesting_ = 0;
  std::size_t layers_ = 0;
  std::size_t path_bytes_ = 0;
};

void append_slots(const KerasLayer& layer, std::vector<KerasSlot>& slots) {
  for (std::size_t i = 0; i < layer.variables.size(); ++i) {
    const KerasVariable& variable = layer.variables[i];
    slots.push_back({.array = layer.array_path + "/" + variable.name,
                     .variable = variable.name,
                     .weights_path = layer.weights_path + "/vars/" + std::to_string(i),
                     .is_trainable = layer.is_trainable && variable.is_trainable});
  }
  for (const KerasLayer& child : layer.children) append_slots(child, slots);
}

}  // namespace

const Json& layers_of_config(const Json& config) {
  return layers_of_class(text_member(config, "class_name"), member(config, "config"));
}

std::string layer_name(const Json& layer) {
  const std::string name = text_member(layer, "name");
  return name.empty() ? text_member(member(layer, "config"), "name") : name;
}

bool is_sequential(const Json& config) {
  return text_member(config, "class_name") == "Sequential";
}

KerasModel::KerasModel(const Json& config, const std::string& label) {
  if (!config.is_object() || !member(config, "class_name").is_string()) {
    refuse_keras_model(label, "is not a Keras model");
  }
  // The object is not copied or moved after this, since the index below holds pointers into the tree.
  root_ = Builder(label).build(config, {}, "", "");
  index(root_);
  append_slots(root_, slots_);
}

void KerasModel::index(const KerasLayer& layer) {
  is_complete_ = is_complete_ && layer.is_known;
  layers_by_path_.emplace(layer.weights_path, &layer);
  for (const KerasLayer& child : layer.children) index(child);
}

const KerasLayer* KerasModel::find(std::string_view weights_path) const {
  const auto found = layers_by_path_.find(weights_path);
  return found == layers_by_path_.end() ? nullptr : found->second;
}

std::vector<KerasSlot> KerasModel::legacy_slots() const {
  return format::legacy_slots(root_);
}

std::vector<KerasSlot> legacy_slots(const KerasLayer& layer) {
  std::vector<KerasSlot> slots;
  append_slots(layer, slots);
  // Keras lists weights of a model as trainable ones, then the others, each in the order of layers.
  std::stable_partition(slots.begin(), slots.end(), [](const KerasSlot& slot) { return slot.is_trainable; });
  return slots;
}

}  // namespace holdfast::format
