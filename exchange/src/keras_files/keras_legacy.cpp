// Legacy files list layers and weights in attributes. Keras itself loads them by position and ignores the weights'
// names. Where the configuration is known and the names agree with it, positions decide here, too; otherwise the
// names in the file do.

#include "keras_files/keras_legacy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bytes/byte_source.h"
#include "holdfast/base/error.h"
#include "keras_files/keras_path.h"

namespace holdfast::format {
namespace {

constexpr const char* kLayerNames = "layer_names";
constexpr const char* kWeightNames = "weight_names";

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// TensorFlow names an output "kernel:0". The number says nothing here.
std::string_view without_output_number(std::string_view weight) {
  const std::size_t colon = weight.rfind(':');
  const bool has_number = colon != std::string_view::npos && is_digits(weight.substr(colon + 1));
  return has_number ? weight.substr(0, colon) : weight;
}

// Takes the weights that the lists name, then the optimizer's, then the rest.
class LegacyReader {
 public:
  LegacyReader(Hdf5Tree& tree, const std::string& root, const KerasModel* model, const std::string& label,
               KerasContent& content)
      : tree_(tree), root_(root), model_(model), label_(label), collector_(tree, content) {
    if (model == nullptr) return;
    for (const KerasLayer& layer : model->layers()) layers_.emplace(layer.array_path, &layer);
  }

  void read(const KerasOptimizer& optimizer) {
    for (const LegacyLayer& layer : legacy_layers(tree_, root_, label_)) take_layer(layer);
    if (const Hdf5Group* group = tree_.find_group(join_path(root_, kTopLevelWeights))) take_top_level(*group);
    // A file of weights alone has no optimizer, and a group of that name there is one of a layer.
    if (const Hdf5Group* group = root_.empty() ? nullptr : tree_.find_group(kOptimizerWeights)) {
      collector_.take_optimizer(paths_of(*group), optimizer, model_);
    }
    collector_.take_rest();
    collector_.take_groups();
  }

 private:
  // The collector has each dataset once: one that was taken is not there any more.
  void require_dataset(const std::string& path) const {
    if (!collector_.has(path)) {
      refuse_keras_model(
          label_, fmt::format("lists the weight {}, which it does not have, or lists it twice", quoted_text(path)));
    }
  }

  std::vector<std::string> paths_of(const Hdf5Group& group) const {
    std::vector<std::string> paths;
    std::set<std::string> once;
    for (const std::string& weight : list_attribute(group.attributes, kWeightNames)) {
      paths.push_back(join_path(group.path, weight));
      require_dataset(paths.back());
      if (!once.insert(paths.back()).second)
        refuse_keras_model(label_, fmt::format("lists the weight {} twice", quoted_text(paths.back())));
    }
    return paths;
  }

  void take_layer(const LegacyLayer& layer) {
    const std::vector<std::string> names = array_names(layer);
    for (std::size_t i = 0; i < layer.weights.size(); ++i) {
      const std::string path = join_path(join_path(root_, layer.name), layer.weights[i]);
      require_dataset(path);
      collector_.take(path, kModelPrefix + names[i]);
    }
  }

  void take_top_level(const Hdf5Group& group) {
    for (const std::string& path : paths_of(group)) {
      collector_.take(path, kModelPrefix + legacy_variable_name(path));
    }
  }

  // By position, as Keras itself loads them, if the configuration says which variables to expect and their names
  // agree. Otherwise by the names in the file.
  std::vector<std::string> array_names(const LegacyLayer& layer) const {
    std::vector<std::string> names;
    const std::vector<KerasSlot> slots = slots_of(layer.name);
    for (std::size_t i = 0; i < slots.size() && slots.size() == layer.weights.size(); ++i) {
      if (is_same_variable(legacy_variable_name(layer.weights[i]), slots[i].variable)) names.push_back(slots[i].array);
    }
    if (names.size() == layer.weights.size()) return names;
    names.clear();
    std::set<std::string> once;
    for (const std::string& weight : layer.weights) {
      names.push_back(layer.name + "/" + legacy_variable(layer.name, weight));
      once.insert(names.back());
    }
    // Names in the file may coincide after their prefixes are removed. Then numbers are used.
    if (once.size() == names.size()) return names;
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = layer.name + "/" + std::to_string(i);
    return names;
  }

  std::vector<KerasSlot> slots_of(const std::string& name) const {
    const auto layer = layers_.find(name);
    return layer == layers_.end() ? std::vector<KerasSlot>{} : legacy_slots(*layer->second);
  }

  Hdf5Tree& tree_;
  const std::string root_;
  const KerasModel* model_;
  std::map<std::string, const KerasLayer*> layers_;  // the model's direct layers, by name
  const std::string& label_;
  KerasCollector collector_;
};

}  // namespace

// Only one number is taken off: a layer "dense_1" may itself have a number.
std::string_view without_number(std::string_view name) {
  const std::size_t last = name.rfind('_');
  const bool is_numbered = last != std::string_view::npos && is_digits(name.substr(last + 1));
  return is_numbered ? name.substr(0, last) : name;
}

bool is_same_variable(std::string_view found, std::string_view expected) {
  // Keras 2 named a kernel depthwise_kernel where Keras 3 says kernel.
  return found == expected || (found == "depthwise_kernel" && expected == "kernel");
}

std::string legacy_variable_name(std::string_view weight) {
  return std::string(without_output_number(last_part(weight)));
}

bool is_legacy_weights(const Hdf5Tree& tree, const std::string& root) {
  const Hdf5Group* group = tree.find_group(root);
  return group != nullptr && has_list_attribute(group->attributes, kLayerNames);
}

KerasOptimizer legacy_optimizer(const Hdf5Tree& tree, const std::string& label) {
  const std::vector<Hdf5Attribute>& attributes = tree.find_group("")->attributes;
  KerasOptimizer optimizer;
  // Keras 3 and older versions order the optimizer's slots differently.
  optimizer.is_keras_3 = text_attribute(attributes, "keras_version").starts_with("3");
  const std::string training = text_attribute(attributes, "training_config");
  if (!training.empty()) {
    optimizer.config =
        member(parse_keras_json(training, fmt::format("training_config of {}", label)), "optimizer_config");
  }
  return optimizer;
}

void read_keras_legacy(Hdf5Tree& tree, const std::string& root, const KerasModel* model,
                       const KerasOptimizer& optimizer, const std::string& label, KerasContent& content) {
  LegacyReader(tree, root, model, label, content).read(optimizer);
}

// The first part that is the layer's name ends the prefix. Parts before it are name scopes of TensorFlow.
std::string legacy_variable(const std::string& layer, const std::string& weight) {
  const std::string_view path = without_output_number(weight);
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = path.find('/', begin);
    if (end == std::string_view::npos) break;
    const std::string_view part = path.substr(begin, end - begin);
    if (part == layer || without_number(part) == layer) return std::string(path.substr(end + 1));
    begin = end + 1;
  }
  return std::string(path);
}

std::vector<LegacyLayer> legacy_layers(const Hdf5Tree& tree, const std::string& root, const std::string& label) {
  const Hdf5Group* group = tree.find_group(root);
  // is_legacy_weights() has found it.
  HOLDFAST_ASSERT(group != nullptr);
  std::vector<LegacyLayer> layers;
  for (const std::string& name : list_attribute(group->attributes, kLayerNames)) {
    const Hdf5Group* layer = tree.find_group(join_path(root, name));
    if (layer == nullptr)
      refuse_keras_model(label, fmt::format("lists the layer {}, which it does not have", quoted_text(name)));
    layers.push_back({name, list_attribute(layer->attributes, kWeightNames)});
  }
  return layers;
}

}  // namespace holdfast::format
