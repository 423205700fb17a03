// Every array of a Keras file becomes an array here, under the best name that is known, and the description keeps its
// path. So nothing is lost, and the same file can be written again. Arrays that no rule names get the prefix
// "extra/".

#include "keras_files/keras_content.h"

#include <fmt/format.h>

#include <algorithm>

#include "bytes/byte_source.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

constexpr const char* kExtraPrefix = "extra/";

}  // namespace

// Sorted as the arrays of every file of Holdfast, so a lookup by name needs no other order.
ArraySet finish_keras(KerasContent content) {
  std::sort(content.arrays.begin(), content.arrays.end(),
            [](const NamedArray& a, const NamedArray& b) { return a.name < b.name; });
  return {.arrays = std::move(content.arrays), .metadata = keras_metadata(content.description)};
}

NamedArray* KerasCollector::find(const std::string& path) const {
  // Datasets are sorted by path.
  const auto found = std::lower_bound(
      tree_.datasets.begin(), tree_.datasets.end(), path,
      [](const Hdf5Dataset& dataset, const std::string& wanted) { return dataset.array.name < wanted; });
  return found != tree_.datasets.end() && found->array.name == path ? &found->array : nullptr;
}

// Not taken yet: a list of a stranger may name one dataset twice.
bool KerasCollector::has(const std::string& path) const {
  return !taken_.contains(path) && find(path) != nullptr;
}

std::string KerasCollector::take(const std::string& path, const std::string& name) {
  NamedArray* dataset = find(path);
  HOLDFAST_ASSERT(dataset != nullptr && taken_.insert(path).second);
  std::string unique = name;
  // Two rules may give one name. The path makes it unique.
  // Paths are unique in a file, so this ends.
  while (!names_.insert(unique).second) unique = kExtraPrefix + path + (unique == name ? "" : "_");
  content_.description.paths.emplace(unique, path);
  content_.arrays.push_back(
      {.name = unique, .dtype = dataset->dtype, .shape = dataset->shape, .bytes = std::move(dataset->bytes)});
  return unique;
}

void KerasCollector::take_rest() {
  for (const Hdf5Dataset& dataset : tree_.datasets) {
    const std::string path = dataset.array.name;
    if (!taken_.contains(path)) take(path, kExtraPrefix + path);
  }
}

void KerasCollector::take_groups() {
  for (const Hdf5Group& group : tree_.groups) {
    if (!group.attributes.empty()) content_.description.groups.push_back(group);
  }
}

// Returns them in the model's order; empty where that order is not known.
std::vector<KerasShape> KerasCollector::trainables(const KerasModel* model) const {
  std::map<std::string_view, const NamedArray*> by_name;
  for (const NamedArray& array : content_.arrays) by_name.emplace(array.name, &array);
  std::vector<KerasShape> result;
  if (model == nullptr || !model->is_complete()) return result;
  // One missing array makes all later positions uncertain, so then no order is known.
  for (const KerasSlot& slot : model->slots()) {
    if (!slot.is_trainable) continue;
    const auto found = by_name.find(kModelPrefix + slot.array);
    if (found == by_name.end()) return {};
    result.push_back({.name = slot.array, .dtype = found->second->dtype, .shape = found->second->shape});
  }
  return result;
}

void KerasCollector::take_optimizer(const std::vector<std::string>& paths, const KerasOptimizer& optimizer,
                                    const KerasModel* model) {
  std::vector<KerasShape> variables;
  for (const std::string& path : paths) {
    const NamedArray& array = *find(path);
    variables.push_back({.name = path, .dtype = array.dtype, .shape = array.shape});
  }
  const std::vector<std::string> names = keras_optimizer_names(optimizer, variables, trainables(model));
  for (std::size_t i = 0; i < paths.size(); ++i) {
    content_.description.optimizer.push_back(take(paths[i], kOptimizerPrefix + names[i]));
  }
}

void require_no_texts(const Hdf5Tree& tree, const std::string& label) {
  if (tree.texts.empty()) return;
  throw Error(ErrorCode::invalid_file, fmt::format("{} holds the text {} among its arrays, but Keras's weight files "
                                                   "hold no texts; save the model again with Keras",
                                                   label, quoted_text(tree.texts.front().path)));
}

Hdf5Tree keras_tree(const std::vector<NamedArray>& arrays, const KerasDescription& description) {
  Hdf5Tree tree;
  tree.groups = description.groups;
  for (const NamedArray& array : arrays) {
    const auto path = description.paths.find(array.name);
    if (path == description.paths.end()) {
      throw Error(ErrorCode::invalid_argument, fmt::format("array {} has no place in the Keras file that the metadata "
                                                           "describes; remove it, or read the Keras file again",
                                                           quoted_text(array.name)));
    }
    // Under the path of the file and not under the name of the array.
    tree.datasets.push_back({.array = array, .attributes = {}});
    tree.datasets.back().array.name = path->second;
  }
  std::set<std::string_view> names;
  for (const NamedArray& array : arrays) names.insert(array.name);
  // A missing array would leave a gap in the Keras file, where Keras expects a variable.
  for (const auto& [name, path] : description.paths) {
    if (!names.contains(name)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the array {}, which the Keras file stores as {}, is missing; read the Keras file again",
                              quoted_text(name), quoted_text(path)));
    }
  }
  return tree;
}

}  // namespace holdfast::format
