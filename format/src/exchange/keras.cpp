#include "holdfast/format/exchange/keras.h"

#include <algorithm>
#include <array>
#include <optional>

#include "exchange/keras_legacy.h"
#include "exchange/keras_weights.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

constexpr std::array<std::string_view, 4> kFormNames = {"weights", "archive", "legacy_weights", "legacy_model"};

std::string config_label(const std::string& path) {
  return "the model's configuration in " + path;
}

ArraySet finish(KerasContent content) {
  std::sort(content.arrays.begin(), content.arrays.end(),
            [](const NamedArray& a, const NamedArray& b) { return a.name < b.name; });
  return {.arrays = std::move(content.arrays), .metadata = keras_metadata(content.description)};
}

// Takes an attribute's text out of the tree: the description keeps it elsewhere.
std::string take_text(Hdf5Tree& tree, const std::string& name) {
  std::vector<Hdf5Attribute>& attributes = tree.groups.front().attributes;
  std::string text = text_attribute(attributes, name);
  if (!text.empty()) std::erase_if(attributes, [&](const Hdf5Attribute& attribute) { return attribute.name == name; });
  return text;
}

ArraySet read_weights(Hdf5Tree tree) {
  KerasContent content;
  content.description.form = KerasForm::weights;
  read_keras_weights(tree, nullptr, {}, content);
  return finish(std::move(content));
}

ArraySet read_legacy_weights(Hdf5Tree tree, const std::string& path) {
  KerasContent content;
  content.description.form = KerasForm::legacy_weights;
  read_keras_legacy(tree, "", nullptr, {}, path, content);
  return finish(std::move(content));
}

ArraySet read_legacy_model(Hdf5Tree tree, const std::string& path) {
  KerasContent content;
  content.description.form = KerasForm::legacy_model;
  const KerasOptimizer optimizer = legacy_optimizer(tree, path);
  content.description.config = take_text(tree, "model_config");
  std::optional<KerasModel> model;
  if (!content.description.config.empty()) {
    model.emplace(parse_keras_json(content.description.config, config_label(path)), config_label(path));
  }
  read_keras_legacy(tree, kModelWeights, model ? &*model : nullptr, optimizer, path, content);
  return finish(std::move(content));
}

ArraySet read_tree(Hdf5Tree tree, const std::string& path) {
  if (is_legacy_weights(tree, kModelWeights)) return read_legacy_model(std::move(tree), path);
  if (is_legacy_weights(tree, "")) return read_legacy_weights(std::move(tree), path);
  if (is_keras_weights(tree)) return read_weights(std::move(tree));
  throw Error(ErrorCode::invalid_file, path +
                                           " is no Keras file: it has neither groups \"vars\" (as .weights.h5 has) nor "
                                           "an attribute layer_names (as older files have); save the model with Keras");
}

}  // namespace

std::string_view name(KerasForm form) {
  return kFormNames[static_cast<std::size_t>(form)];
}

KerasForm keras_form_from_name(std::string_view name) {
  const auto found = std::find(kFormNames.begin(), kFormNames.end(), name);
  if (found != kFormNames.end()) return static_cast<KerasForm>(found - kFormNames.begin());
  throw Error(ErrorCode::invalid_argument, "\"" + std::string(name) +
                                               "\" is no form of Keras file; use weights, archive, legacy_weights or "
                                               "legacy_model");
}

ArraySet read_keras(FileSystem& files, const std::string& path) {
  return read_tree(read_hdf5_tree(files, path), path);
}

void write_keras(FileSystem& files, const std::string& path, const ArraySet& arrays, KerasForm form) {
  const KerasDescription description = keras_description(parse_keras_json(arrays.metadata, "the metadata"));
  if (form != description.form) throw Error(ErrorCode::unsupported, "TODO");
  Hdf5Tree tree = keras_tree(arrays.arrays, description);
  write_hdf5_tree(files, path, tree);
}

}  // namespace holdfast::format
namespace holdfast::format {
ArraySet keras_to_savepoint(const ArraySet&, const ArraySet& like) { return like; }
}
