// Finds and removes the wrappers of multi_gpu_model. A wrapper is recognised by its structure: inputs, at least two
// Lambda slices for each, one base model fed by the slices, and concatenations fed by the base model. A model that
// only resembles one stays as it is.

#include "keras/keras_replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "bytes/byte_source.h"
#include "holdfast/base/error.h"
#include "keras_files/keras_legacy.h"
#include "keras_files/keras_model.h"
#include "keras_files/keras_path.h"

namespace holdfast::format {
namespace {

bool is_class(const Json& layer, std::string_view class_name) {
  return text_member(layer, "class_name") == class_name;
}

// Keras 1 had one layer class for all ways of merging.
bool is_concatenation(const Json& layer) {
  const Json& options = member(layer, "config");
  const Json& axis = is_class(layer, "Merge") ? member(options, "concat_axis") : member(options, "axis");
  const bool is_kind =
      is_class(layer, "Concatenate") || (is_class(layer, "Merge") && text_member(options, "mode") == "concat");
  return is_kind && (axis == 0 || axis.is_null());
}

// Collects the names in nested lists of calls: [[["lambda_1", 0, 0, {}]], ...]. Ignores everything else.
void collect_callers(const Json& nodes, std::size_t depth, std::vector<std::string>& names) {
  if (!nodes.is_array() || depth > 3) return;
  if (!nodes.empty() && nodes.front().is_string()) return names.push_back(nodes.front().get<std::string>());
  for (const Json& node : nodes) collect_callers(node, depth + 1, names);
}

// True if the layer is called, and only with the outputs of `layers`.
bool is_fed_by(const Json& layer, const std::set<std::string>& layers) {
  std::vector<std::string> callers;
  collect_callers(member(layer, "inbound_nodes"), 0, callers);
  return !callers.empty() &&
         std::all_of(callers.begin(), callers.end(), [&](const std::string& name) { return layers.contains(name); });
}

struct Parts {
  std::set<std::string> inputs;
  std::set<std::string> slices;
  const Json* base = nullptr;
};

// Returns the base model's entry in a wrapper's configuration; null if it is not a wrapper.
const Json* base_of(const Json& config) {
  const Json& layers = layers_of_config(config);
  if (!layers.is_array() || is_sequential(config)) return nullptr;
  Parts parts;
  std::size_t concatenations = 0;
  for (const Json& layer : layers) {
    if (is_class(layer, "InputLayer")) {
      parts.inputs.insert(layer_name(layer));
    } else if (is_class(layer, "Lambda")) {
      // multi_gpu_model cut its batches with Lambda layers, whose code is not looked at.
      parts.slices.insert(layer_name(layer));
    } else if (layers_of_config(layer).is_array() && parts.base == nullptr) {
      parts.base = &layer;
    } else if (is_concatenation(layer)) {
      ++concatenations;
    } else {
      return nullptr;
    }
  }
  // multi_gpu_model made at least two slices of each input.
  const bool has_slices = !parts.inputs.empty() && parts.slices.size() >= 2 * parts.inputs.size();
  if (parts.base == nullptr || concatenations == 0 || !has_slices) return nullptr;
  const std::set<std::string> base_name = {layer_name(*parts.base)};
  for (const Json& layer : layers) {
    if (is_class(layer, "InputLayer")) continue;
    const bool is_slice = is_class(layer, "Lambda");
    // Slices see inputs, the base model sees slices, and concatenations see the base model.
    if (!is_fed_by(layer, is_slice ? parts.inputs : &layer == parts.base ? parts.slices : base_name)) return nullptr;
  }
  return parts.base;
}

// A direct layer of the base model, and the indices of its weights in the wrapper's list.
struct Share {
  std::string layer;
  std::vector<std::size_t> weights;
};

// By position: Keras listed the trainable weights of all layers first, then the others.
std::vector<Share> shares_by_position(const KerasModel& model, const std::vector<std::string>& weights) {
  const std::vector<KerasSlot> slots = model.legacy_slots();
  std::vector<Share> shares;
  if (!model.is_complete() || slots.size() != weights.size()) return shares;
  std::map<std::string, std::size_t> positions;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    // A wrong position would give a layer the weights of another one of the same shape.
    if (!is_same_variable(legacy_variable_name(weights[i]), slots[i].variable)) return {};
    positions.emplace(slots[i].array, i);
  }
  for (const KerasLayer& layer : model.layers()) {
    Share share{.layer = layer.array_path, .weights = {}};
    for (const KerasSlot& slot : legacy_slots(layer)) share.weights.push_back(positions.at(slot.array));
    shares.push_back(std::move(share));
  }
  return shares;
}

// Layer name -> index of the direct layer that it is or lies in.
using Owners = std::map<std::string, std::size_t, std::less<>>;

void collect_names(const KerasLayer& layer, std::size_t owner, Owners& owners) {
  const std::string& path = layer.array_path;
  owners.emplace(path.substr(path.rfind('/') + 1), owner);
  for (const KerasLayer& child : layer.children) collect_names(child, owner, owners);
}

// The names of groups in a path, without the last part.
std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.pop_back();
  return parts;
}

// By the layer names in the weight's name: an exact match first, then a name that TensorFlow 1 numbered again.
std::optional<std::size_t> owner_of(const std::string& weight, const Owners& owners) {
  const std::vector<std::string> parts = parts_of(weight);
  for (const std::string& part : parts) {
    if (const auto found = owners.find(part); found != owners.end()) return found->second;
  }
  for (const std::string& part : parts) {
    const auto found = owners.find(without_number(part));
    if (found != owners.end()) return found->second;
  }
  return std::nullopt;
}

std::vector<Share> shares_by_name(const KerasModel& model, const std::vector<std::string>& weights) {
  Owners owners;
  std::vector<Share> shares;
  for (const KerasLayer& layer : model.layers()) {
    collect_names(layer, shares.size(), owners);
    shares.push_back({.layer = layer.array_path, .weights = {}});
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto owner = owner_of(weights[i], owners);
    // One weight without a layer shows that the names do not follow the pattern at all.
    if (!owner) return {};
    shares[*owner].weights.push_back(i);
  }
  return shares;
}

// Without a configuration only the weights' names show which layers there are.
std::vector<Share> shares_of_names(const std::vector<std::string>& weights) {
  Owners owners;
  std::vector<Share> shares;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::vector<std::string> parts = parts_of(weights[i]);
    if (parts.empty() || parts.front().empty()) return {};
    const auto [owner, is_new] = owners.emplace(parts.front(), shares.size());
    if (is_new) shares.push_back({.layer = parts.front(), .weights = {}});
    shares[owner->second].weights.push_back(i);
  }
  return shares;
}

void set_list(Hdf5Group& group, const std::string& name, std::vector<std::string> texts) {
  std::erase_if(group.attributes, [&](const Hdf5Attribute& attribute) {
    const bool is_part = attribute.name.starts_with(name) && attribute.name.size() > name.size() &&
                         attribute.name.find_first_not_of("0123456789", name.size()) == std::string::npos;
    return attribute.name == name || is_part;
  });
  group.attributes.push_back({name, std::move(texts)});
}

// True for the groups of `layers` and everything in them.
bool is_below(const std::string& path, const std::set<std::string>& layers) {
  for (std::size_t end = path.size(); end != std::string::npos && end > 0; end = path.rfind('/', end - 1)) {
    if (layers.contains(path.substr(0, end))) return true;
  }
  return false;
}

void move_datasets(Hdf5Tree& tree, std::map<std::string, std::string> moves, const std::string& label) {
  for (Hdf5Dataset& dataset : tree.datasets) {
    const auto move = moves.find(dataset.array.name);
    if (move == moves.end()) continue;
    dataset.array.name = move->second;
    // What is left in the end is listed by a layer and missing in the file.
    moves.erase(move);
  }
  if (!moves.empty()) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{} lists the weight {}, which it does not have; save the model again with Keras", label,
                            quoted_text(moves.begin()->first)));
  }
  // A tree is sorted by name, and some names have changed.
  std::sort(tree.datasets.begin(), tree.datasets.end(),
            [](const Hdf5Dataset& a, const Hdf5Dataset& b) { return a.array.name < b.array.name; });
}

// Moves each share of the weights of `base` into a group of its own, and removes the wrapper's groups.
void move_weights(Hdf5Tree& tree, const std::string& root, const std::vector<LegacyLayer>& wrapper,
                  const LegacyLayer& base, const std::vector<Share>& shares, const std::string& label) {
  std::set<std::string> dropped;
  for (const LegacyLayer& layer : wrapper) dropped.insert(join_path(root, layer.name));
  std::erase_if(tree.groups, [&](const Hdf5Group& group) { return is_below(group.path, dropped); });

  std::map<std::string, std::string> moves;
  std::vector<std::string> names;
  for (const Share& share : shares) {
    std::vector<std::string> weights;
    for (const std::size_t index : share.weights) {
      weights.push_back(base.weights[index]);
      moves[join_path(join_path(root, base.name), weights.back())] =
          join_path(join_path(root, share.layer), weights.back());
    }
    names.push_back(share.layer);
    tree.groups.push_back({.path = join_path(root, share.layer), .attributes = {{"weight_names", std::move(weights)}}});
  }
  for (Hdf5Group& group : tree.groups) {
    if (group.path == root) set_list(group, "layer_names", names);
  }
  std::sort(tree.groups.begin(), tree.groups.end(),
            [](const Hdf5Group& a, const Hdf5Group& b) { return a.path < b.path; });
  move_datasets(tree, std::move(moves), label);
}

// Returns the only layer with weights; null if several layers have weights, or none.
const LegacyLayer* only_layer_with_weights(const std::vector<LegacyLayer>& layers) {
  const LegacyLayer* only = nullptr;
  for (const LegacyLayer& layer : layers) {
    if (layer.weights.empty()) continue;
    if (only != nullptr) return nullptr;
    only = &layer;
  }
  return only;
}

// True if the layers' names alone look like a wrapper's: inputs, at least two slices for each, the base model, and
// something after it.
bool looks_wrapped(const std::vector<LegacyLayer>& layers, const LegacyLayer& base) {
  std::size_t slices = 0;
  std::size_t inputs = 0;
  const LegacyLayer* layer = layers.data();
  for (; layer != &base; ++layer) ++(without_number(layer->name) == "lambda" ? slices : inputs);
  return inputs > 0 && slices >= 2 * inputs && slices % inputs == 0 && layer + 1 != layers.data() + layers.size();
}

std::size_t unwrap_by_names(Hdf5Tree& tree, const std::string& root, const std::string& label) {
  const std::vector<LegacyLayer> layers = legacy_layers(tree, root, label);
  const LegacyLayer* base = only_layer_with_weights(layers);
  if (base == nullptr || !looks_wrapped(layers, *base)) return 0;
  const std::vector<Share> shares = shares_of_names(base->weights);
  if (shares.empty()) return 0;
  move_weights(tree, root, layers, *base, shares, label);
  return 1;
}

}  // namespace

std::size_t unwrap_replicas(Hdf5Tree& tree, const std::string& root, Json& config, const std::string& label) {
  if (config.is_null()) return unwrap_by_names(tree, root, label);
  std::size_t wrappers = 0;
  const Json* base = &config;
  // A wrapper may be wrapped again.
  for (const Json* inner = base_of(config); inner != nullptr; inner = base_of(*inner), ++wrappers) base = inner;
  if (wrappers == 0) return 0;

  Json base_config = {{"class_name", member(*base, "class_name")}, {"config", member(*base, "config")}};
  const std::vector<LegacyLayer> layers = legacy_layers(tree, root, label);
  if (const LegacyLayer* weights = only_layer_with_weights(layers)) {
    const KerasModel model(base_config, fmt::format("the base model in {}", label));
    std::vector<Share> shares = shares_by_position(model, weights->weights);
    // Positions fail for unknown classes. Names may still identify the layers.
    if (shares.empty()) shares = shares_by_name(model, weights->weights);
    if (shares.empty()) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("{} holds a replicated model, but its {} weights cannot be assigned to the layers of its "
                              "base model; save the base model alone with Keras",
                              label, weights->weights.size()));
    }
    move_weights(tree, root, layers, *weights, shares, label);
  }
  config = std::move(base_config);
  return wrappers;
}

}  // namespace holdfast::format
