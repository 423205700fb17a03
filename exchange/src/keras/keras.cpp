// Decides by content which form a Keras file has, and calls the reader or writer of that form. Readers turn a file
// into arrays and a description (keras_content.h). Writers start from these, or from a savepoint that was turned into
// them.

#include "holdfast/format/exchange/keras.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "holdfast/base/error.h"
#include "keras/keras_completion.h"
#include "keras/keras_config_writer.h"
#include "keras/keras_functional_reader.h"
#include "keras/keras_replicas.h"
#include "keras/keras_savepoint.h"
#include "keras_files/keras_archive.h"
#include "keras_files/keras_forms.h"
#include "keras_files/keras_legacy.h"
#include "keras_files/keras_tree.h"
#include "keras_files/keras_weights.h"

namespace holdfast::format {
namespace {

std::string config_label(const std::string& path) {
  return fmt::format("the model's configuration in {}", path);
}

// Removes an attribute's text from the tree, because the description keeps it elsewhere.
std::string take_text(Hdf5Tree& tree, const std::string& name) {
  std::vector<Hdf5Attribute>& attributes = tree.groups.front().attributes;
  std::string text = text_attribute(attributes, name);
  // The text would otherwise be written twice: as the configuration, and as an attribute of some group.
  if (!text.empty()) std::erase_if(attributes, [&](const Hdf5Attribute& attribute) { return attribute.name == name; });
  return text;
}

// The reverse of take_text: a whole-model file has the configuration as an attribute of its root.
void add_config(KerasDescription& description) {
  const Hdf5Attribute attribute = {"model_config", description.config};
  for (Hdf5Group& group : description.groups) {
    if (group.path.empty()) return group.attributes.push_back(attribute);
  }
  description.groups.push_back({.path = "", .attributes = {attribute}});
}

// A weights file has no configuration, so names follow from classes alone.
ArraySet read_weights(Hdf5Tree tree) {
  KerasContent content;
  content.description.form = KerasForm::weights;
  read_keras_weights(tree, nullptr, {}, content);
  return finish_keras(std::move(content));
}

ArraySet read_legacy_weights(Hdf5Tree tree, const std::string& path) {
  KerasContent content;
  content.description.form = KerasForm::legacy_weights;
  Json no_config;
  // A model of Keras's multi_gpu_model() has its layers in a wrapper, and in it the base model.
  content.description.replicated = unwrap_replicas(tree, "", no_config, path);
  read_keras_legacy(tree, "", nullptr, {}, path, content);
  return finish_keras(std::move(content));
}

ArraySet read_legacy_model(Hdf5Tree tree, const std::string& path) {
  KerasContent content;
  content.description.form = KerasForm::legacy_model;
  const KerasOptimizer optimizer = legacy_optimizer(tree, path);
  // Wrappers are removed before the configuration is used, so that all names are those of the base model.
  std::string& config = content.description.config = take_text(tree, "model_config");
  Json parsed = config.empty() ? Json() : parse_keras_json(config, config_label(path));
  content.description.replicated = unwrap_replicas(tree, kModelWeights, parsed, path);
  // Only a changed configuration is written anew. Otherwise its text stays as Keras wrote it.
  if (content.description.replicated > 0 && !config.empty()) config = parsed.dump();
  std::optional<KerasModel> model;
  if (!config.empty()) model.emplace(parsed, config_label(path));
  read_keras_legacy(tree, kModelWeights, model ? &*model : nullptr, optimizer, path, content);
  return finish_keras(std::move(content));
}

std::vector<ArrayInfo> infos(const std::vector<NamedArray>& arrays) {
  std::vector<ArrayInfo> result;
  for (const NamedArray& array : arrays) {
    result.push_back({.name = array.name, .dtype = array.dtype, .shape = array.shape, .digest = {}});
  }
  return result;
}

// The arrays of a savepoint that was written as a Keras file, under the savepoint's own names of layers.
std::vector<ArrayInfo> infos_of_savepoint(const std::vector<NamedArray>& arrays, const Json& metadata) {
  const std::map<std::string, std::string> names = savepoint_layer_names(metadata);
  const std::string_view prefix = kModelPrefix;
  std::vector<ArrayInfo> result = infos(arrays);
  for (ArrayInfo& info : result) {
    // The last part is the variable. What lies between is the path of the layer.
    const std::size_t end = info.name.rfind('/');
    if (!info.name.starts_with(prefix) || end < prefix.size()) continue;
    const auto found = names.find(info.name.substr(prefix.size(), end - prefix.size()));
    if (found != names.end()) info.name.replace(prefix.size(), end - prefix.size(), found->second);
  }
  return result;
}

// Leaves out the arrays that only Holdfast's model has, and gives the others the shapes of the Keras file.
KerasContent without_additions(std::vector<NamedArray> arrays, KerasDescription description) {
  std::erase_if(arrays, [&](const NamedArray& array) { return description.added.contains(array.name); });
  for (NamedArray& array : arrays) {
    if (description.scalars.contains(array.name)) array.shape.clear();
  }
  return {.arrays = std::move(arrays), .description = std::move(description)};
}

}  // namespace

bool is_keras_tree(const Hdf5Tree& tree) {
  return is_legacy_weights(tree, kModelWeights) || is_legacy_weights(tree, "") || is_keras_weights(tree);
}

ArraySet read_keras_tree(Hdf5Tree tree, const std::string& path) {
  if (!is_keras_tree(tree)) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("{} is not a Keras file: it has neither groups \"vars\" (as .weights.h5 has) nor an "
                            "attribute layer_names (as older files have); save the model with Keras",
                            path));
  }
  // The other forms could not hold them, so they would be lost without a word.
  require_no_texts(tree, path);
  // A whole model has its weights in a group below the root, so it is looked for first.
  if (is_legacy_weights(tree, kModelWeights)) return read_legacy_model(std::move(tree), path);
  return is_legacy_weights(tree, "") ? read_legacy_weights(std::move(tree), path) : read_weights(std::move(tree));
}

ArraySet read_keras(FileSystem& files, const std::string& path) {
  if (is_keras_archive(files, path)) {
    const KerasArchive archive(files, path);
    return finish_keras(
        archive.content(archive.weights().read(), [&](std::size_t i) { return archive.read(archive.assets()[i]); }));
  }
  return read_keras_tree(read_hdf5_tree(files, path), path);
}

std::vector<ArrayInfo> write_keras(FileSystem& files, const std::string& path, const ArraySet& arrays, KerasForm form) {
  const Json metadata = parse_keras_json(arrays.metadata, "the metadata");
  const bool has_savepoint = is_savepoint(metadata);
  const KerasContent content = has_savepoint
                                   ? lay_out(keras_from_savepoint(arrays, metadata), form)
                                   : convert(without_additions(arrays.arrays, keras_description(metadata)), form);
  if (form == KerasForm::archive) {
    write_keras_archive(files, path, content);
  } else {
    KerasDescription description = content.description;
    // Only in the file: the description itself keeps the text at one place.
    if (form == KerasForm::legacy_model) add_config(description);
    write_hdf5_tree(files, path, keras_tree(content.arrays, description));
  }
  return has_savepoint ? infos_of_savepoint(content.arrays, metadata) : infos(content.arrays);
}

KerasModelGraph keras_model_graph(const ArraySet& keras) {
  const Json metadata = parse_keras_json(keras.metadata, "the Keras model's metadata");
  const KerasDescription description = keras_description(metadata);
  if (description.config.empty()) {
    throw Error(ErrorCode::unsupported,
                "the Keras weights cannot become a model of Holdfast: their file has no configuration of a model; "
                "convert the .keras file instead");
  }
  const std::string label = "the Keras model's configuration";
  KerasFunctional model = read_keras_functional(parse_keras_json(description.config, label), label);
  return {.graph = model_graph_json(model.graph).dump(),
          .notes = std::move(model.notes),
          .arrays = completing_arrays(model, keras)};
}

ArraySet keras_to_savepoint(const ArraySet& keras, const ArraySet& like) {
  const Json metadata = parse_keras_json(keras.metadata, "the Keras model's metadata");
  const Json like_metadata = parse_keras_json(like.metadata, "the savepoint's metadata");
  // Only a savepoint says which layers the SDK's model has, and in which order.
  if (!is_savepoint(like_metadata)) {
    throw Error(ErrorCode::invalid_argument,
                "cannot turn the Keras weights into a savepoint: the file to imitate is not a savepoint (its metadata "
                "is not of kind \"savepoint\"); give a savepoint of the same model");
  }
  return savepoint_from_keras(keras, keras_description(metadata), like, like_metadata);
}

}  // namespace holdfast::format
