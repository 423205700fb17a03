// A weights file names groups after classes and attributes and numbers the variables. If the configuration is known,
// layers get their own names. Otherwise names are guessed from the classes, but only where the number of variables
// leaves no doubt.

#include "keras_files/keras_weights.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "keras_files/keras_path.h"

namespace holdfast::format {
namespace {

constexpr std::string_view kVariablesGroup = "vars";
constexpr std::string_view kOptimizerGroup = "optimizer";

struct VariablePath {
  std::string owner;  // "layers/dense", empty for the model itself
  std::size_t index;
};

// Keras writes numbers without leading zeros. Nine digits keep the index within its type.
bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 9 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
         (text == "0" || text[0] != '0');
}

// Splits "layers/dense/vars/0" into its owner and its index; empty for any other path.
std::optional<VariablePath> parse_path(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || !is_number(path.substr(slash + 1))) return std::nullopt;
  std::string_view group = path.substr(0, slash);
  if (group != kVariablesGroup && !group.ends_with("/vars")) return std::nullopt;
  group.remove_suffix(kVariablesGroup.size());
  if (!group.empty()) group.remove_suffix(1);
  VariablePath result{.owner = std::string(group), .index = 0};
  std::from_chars(path.data() + slash + 1, path.data() + path.size(), result.index);
  return result;
}

// Removes the groups that stand for lists of layers.
std::string without_lists(std::string_view path) {
  std::string result;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    if (part != "layers" && part != "_layer_checkpoint_dependencies") {
      if (!result.empty()) result += '/';
      result += part;
    }
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return result;
}

// Collects the variables of each owner, names them, and takes everything else as it is.
class WeightsReader {
 public:
  WeightsReader(Hdf5Tree& tree, const KerasModel* model, KerasContent& content)
      : tree_(tree), model_(model), collector_(tree, content) {}

  void read(const KerasOptimizer& optimizer) {
    // Sorted by number and not by text, where "10" would come before "2".
    std::map<std::string, std::map<std::size_t, std::string>> owners;  // owner -> index -> path
    for (const Hdf5Dataset& dataset : tree_.datasets) {
      if (const auto path = parse_path(dataset.array.name)) owners[path->owner][path->index] = dataset.array.name;
    }
    for (const auto& [owner, paths] : owners) {
      if (owner != kOptimizerGroup) take_variables(owner, paths);
    }
    if (const auto found = owners.find(std::string(kOptimizerGroup)); found != owners.end()) {
      std::vector<std::string> paths;
      for (const auto& [index, path] : found->second) paths.push_back(path);
      collector_.take_optimizer(paths, optimizer, model_);
    }
    collector_.take_rest();
    collector_.take_groups();
  }

 private:
  void take_variables(const std::string& owner, const std::map<std::size_t, std::string>& paths) {
    const std::string prefix = array_prefix(owner);
    std::vector<std::string> names;
    // A gap means that this is not the list that the tables know.
    if (paths.rbegin()->first + 1 == paths.size()) names = variable_names(owner, paths.size());
    for (const auto& [index, path] : paths) {
      collector_.take(path, prefix + (names.empty() ? std::to_string(index) : names[index]));
    }
  }

  std::string array_prefix(const std::string& owner) const {
    // Objects inside the optimizer keep their paths.
    if (owner.starts_with("optimizer/")) return owner + "/";
    if (owner.empty()) return kModelPrefix;
    // Finds the nearest object that the configuration knows.
    // From the object itself up to the root: parts of a layer that the tables lack keep their own names below that of
    // the layer.
    for (std::size_t end = owner.size(); model_ != nullptr && end != std::string::npos && end > 0;
         end = owner.rfind('/', end - 1)) {
      if (const KerasLayer* layer = model_->find(std::string_view(owner).substr(0, end))) {
        const std::string rest = without_lists(std::string_view(owner).substr(std::min(end + 1, owner.size())));
        return kModelPrefix + layer->array_path + "/" + (rest.empty() ? "" : rest + "/");
      }
    }
    const std::string path = without_lists(owner);
    return path.empty() ? kModelPrefix : kModelPrefix + path + "/";
  }

  std::vector<std::string> variable_names(const std::string& owner, std::size_t count) const {
    const KerasLayer* layer = model_ == nullptr ? nullptr : model_->find(owner);
    if (layer == nullptr) return guess_keras_variables(guessed_class(owner), count);
    if (!layer->is_known || layer->variables.size() != count) {
      return guess_keras_variables(keras_snake_case(layer->class_name), count);
    }
    std::vector<std::string> names;
    for (const KerasVariable& variable : layer->variables) names.push_back(variable.name);
    return names;
  }

  // Only its name says what a wrapper's layer is, if anything does.
  std::string guessed_class(const std::string& owner) const {
    const std::string_view part = last_part(owner);
    const Hdf5Group* group = part == "layer" ? tree_.find_group(owner + "/vars") : nullptr;
    return group == nullptr ? std::string(part) : text_attribute(group->attributes, "name");
  }

  Hdf5Tree& tree_;
  const KerasModel* model_;
  KerasCollector collector_;
};

}  // namespace

// Any group of this name, so a file of another program that has one is taken for one of Keras.
bool is_keras_weights(const Hdf5Tree& tree) {
  return std::any_of(tree.groups.begin(), tree.groups.end(),
                     [](const Hdf5Group& group) { return last_part(group.path) == kVariablesGroup; });
}

void read_keras_weights(Hdf5Tree& tree, const KerasModel* model, const KerasOptimizer& optimizer,
                        KerasContent& content) {
  WeightsReader(tree, model, content).read(optimizer);
}

}  // namespace holdfast::format
