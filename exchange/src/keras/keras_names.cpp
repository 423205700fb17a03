// A layer is named in the configuration, in the calls that take its outputs, and in its arrays. All are changed
// together, so the file stays one that Keras could have written. Names of Holdfast are a part of paths and of files, so
// they have fewer letters than those of Keras. Each change is told in a note.

#include "keras/keras_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "bytes/array_prefixes.h"
#include "bytes/byte_source.h"
#include "keras_files/keras_json.h"
#include "keras_files/keras_model.h"
#include "keras_files/keras_path.h"

namespace holdfast::format {
namespace {

constexpr std::size_t kMaxLayerName = 80;
// Models are nested, and calls are lists in lists. A file is not trusted, so both have a limit.
constexpr std::size_t kMaxNamesDepth = 64;

bool is_in_layer_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

std::string layer_name_like(const std::string& name, std::set<std::string>& taken) {
  std::string result;
  for (const char c : name) {
    // A letter of several bytes becomes one sign.
    const bool is_continuation = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (!is_continuation) result += is_in_layer_name(c) ? c : '_';
  }
  // Room for a number at the end, and for a sign in front.
  result.resize(std::min(result.size(), kMaxLayerName - 8));
  if (result.empty() || result.front() == '.') result.insert(0, "_");
  std::string unused = result;
  for (std::size_t number = 2; !taken.insert(unused).second; ++number) unused = fmt::format("{}_{}", result, number);
  return unused;
}

using Names = std::map<std::string, std::string>;

// A reference is a list of a layer's name, the number of a call and that of an output.
void rename_references(Json& json, const Names& names, std::size_t depth) {
  if (depth > kMaxNamesDepth || !json.is_structured()) return;
  const bool is_reference = json.is_array() && json.size() >= 3 && json[0].is_string() && json[1].is_number_integer() &&
                            json[2].is_number_integer();
  if (is_reference) {
    const auto found = names.find(json[0].get<std::string>());
    if (found != names.end()) json[0] = found->second;
  }
  for (Json& element : json) rename_references(element, names, depth + 1);
}

class LayerRenamer {
 public:
  void rename(Json& model, const std::string& path, std::size_t depth) {
    if (depth > kMaxNamesDepth || !layers_of_config(model).is_array()) return;
    Json& options = model["config"];
    Json& layers = options.is_array() ? options : options["layers"];
    const Names names = rename_layers_of(layers, path);
    for (Json& layer : layers) {
      if (!names.empty() && layer.contains("inbound_nodes")) rename_references(layer["inbound_nodes"], names, 0);
      rename(layer, join_path(path, layer_name(layer)), depth + 1);
    }
    if (names.empty() || !options.is_object()) return;
    for (const char* key : {"input_layers", "output_layers"}) {
      if (options.contains(key)) rename_references(options[key], names, 0);
    }
  }

  // Old and new paths. Those of models come before those of their layers, which follow in a renamed model.
  const std::vector<std::pair<std::string, std::string>>& paths() const { return paths_; }

 private:
  Names rename_layers_of(Json& layers, const std::string& path) {
    // All names first: a new one must not be that of a layer that keeps its own.
    std::set<std::string> taken;
    for (const Json& layer : layers) taken.insert(layer_name(layer));
    Names names;
    for (Json& layer : layers) {
      const std::string name = layer_name(layer);
      if (name.empty() || is_layer_name(name) || !layer.is_object()) continue;
      const std::string renamed = layer_name_like(name, taken);
      if (layer.contains("name")) layer["name"] = renamed;
      if (member(layer, "config").is_object()) layer["config"]["name"] = renamed;
      names.emplace(name, renamed);
      paths_.emplace_back(join_path(path, name), join_path(path, renamed));
    }
    return names;
  }

  std::vector<std::pair<std::string, std::string>> paths_;
};

// "model/PATH/kernel", or "optimizer/momentum/PATH/kernel".
void rename_array(std::string& name, const std::vector<std::pair<std::string, std::string>>& paths) {
  std::size_t begin = name.find('/') + 1;
  if (name.starts_with(kOptimizerPrefix)) begin = name.find('/', begin) + 1;
  if (begin == 0) return;
  for (const auto& path : paths) {
    const std::string before = path.first + "/";
    if (name.compare(begin, before.size(), before) == 0) name.replace(begin, path.first.size(), path.second);
  }
}

}  // namespace

bool is_layer_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxLayerName && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), is_in_layer_name);
}

std::vector<std::string> rename_layers(ArraySet& keras, Json& metadata) {
  Json& description = metadata["keras"];
  Json config = parse_keras_json(text_member(description, "config"), "the Keras model's configuration");
  LayerRenamer renamer;
  renamer.rename(config, "", 0);
  const auto& paths = renamer.paths();
  std::vector<std::string> notes;
  if (paths.empty()) return notes;
  for (const auto& path : paths) {
    notes.push_back(
        fmt::format("layer {} is called {} here: names of Holdfast have letters of ASCII, digits and \"_-.\"",
                    quoted_text(path.first), quoted_text(path.second)));
  }
  description["config"] = config.dump();
  for (NamedArray& array : keras.arrays) rename_array(array.name, paths);
  // The places of arrays in the file are found by their names, which have just changed.
  Json files = Json::object();
  for (const auto& [name, place] : member(description, "paths").items()) {
    std::string array = name;
    rename_array(array, paths);
    files[array] = place;
  }
  description["paths"] = std::move(files);
  // Users may have changed the metadata, so this may be any JSON.
  for (Json& name : description["optimizer"]) {
    if (name.is_string()) rename_array(name.get_ref<std::string&>(), paths);
  }
  return notes;
}

}  // namespace holdfast::format
