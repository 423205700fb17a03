// Lays the same arrays out as another form of Keras file. Forms differ in paths, in the order of variables and in
// where the optimizer and its configuration are kept. All of that follows from the model's configuration, so an
// unknown layer makes another form impossible.

#include "keras_files/keras_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "holdfast/base/error.h"
#include "keras_files/keras_legacy.h"

namespace holdfast::format {
namespace {

// What the files say about the Keras version that wrote them. Keras 3 ignores the backend. Keras 2 reordered kernels
// for any backend but its own.
constexpr const char* kKerasVersion = "3.0.0";
constexpr const char* kBackend = "tensorflow";
constexpr const char* kModelWeightsPrefix = "model_weights/";

bool is_weights_form(KerasForm form) {
  return form == KerasForm::weights || form == KerasForm::archive;
}

[[noreturn]] void refuse_form(KerasForm form, const std::string& problem) {
  throw Error(ErrorCode::unsupported, fmt::format("cannot write the Keras model as {}: {}", name(form), problem));
}

Hdf5Group group(std::string path, std::vector<Hdf5Attribute> attributes) {
  return {.path = std::move(path), .attributes = std::move(attributes)};
}

// For the error alone: the user should learn which layer is the obstacle.
const KerasLayer* first_unknown(const std::vector<KerasLayer>& layers) {
  for (const KerasLayer& layer : layers) {
    if (!layer.is_known) return &layer;
    if (const KerasLayer* child = first_unknown(layer.children)) return child;
  }
  return nullptr;
}

// Gives every array its path in the new form, and collects the attributes that belong to that form.
// Lives for one call of lay_out(), which owns what the references below name.
class Composer {
 public:
  Composer(const KerasContent& content, const Json& config, KerasForm form)
      : content_(content), form_(form), config_(config), model_(config, "the model's configuration") {
    if (!model_.is_complete()) {
      const KerasLayer* unknown = first_unknown(model_.layers());
      if (unknown == nullptr) refuse_form(form, "its class is unknown; write the form that was read");
      refuse_form(
          form,
          fmt::format("its layer \"{}\" is of class {}, whose variables are unknown; write the form that was read",
                      unknown->array_path, unknown->class_name));
    }
    // Each array must find a place. What is left at the end would be lost.
    for (const NamedArray& array : content.arrays) unplaced_.insert(array.name);
  }

  KerasDescription compose() {
    result_.form = form_;
    if (is_weights_form(form_)) {
      compose_weights();
    } else {
      compose_legacy(form_ == KerasForm::legacy_model ? kModelWeights : "");
    }
    if (!unplaced_.empty()) {
      refuse_form(form_, fmt::format("array \"{}\" belongs to none of its layers; remove it", *unplaced_.begin()));
    }
    return std::move(result_);
  }

 private:
  void place(const std::string& array, const std::string& path) {
    // Each place of the new form needs an array: Keras loads by position, and a gap would move all later ones.
    if (unplaced_.erase(array) == 0)
      refuse_form(form_, fmt::format("it lacks the array \"{}\"; pass all of its weights", array));
    result_.paths.emplace(array, path);
  }

  void compose_weights() {
    for (const KerasSlot& slot : model_.slots()) place(kModelPrefix + slot.array, slot.weights_path);
    result_.optimizer = content_.description.optimizer;
    for (std::size_t i = 0; i < result_.optimizer.size(); ++i) {
      place(result_.optimizer[i], "optimizer/vars/" + std::to_string(i));
    }
    // Nothing else in such a file says which optimizer it is.
    const std::string optimizer = optimizer_name();
    if (!result_.optimizer.empty() && !optimizer.empty()) {
      result_.groups.push_back(group("optimizer/vars", {{"name", optimizer}}));
    }
    result_.config = form_ == KerasForm::archive ? archive_config().dump() : "";
    result_.archive_metadata =
        form_ == KerasForm::archive ? Json{{"keras_version", kKerasVersion}, {"date_saved", ""}}.dump() : "";
  }

  // Groups of direct layers alone: what lies in a nested model is listed as weights of that one layer.
  void compose_legacy(const std::string& root) {
    const std::string prefix = root.empty() ? "" : root + "/";
    std::vector<std::string> layers;
    for (const KerasLayer& layer : model_.layers()) {
      layers.push_back(layer.array_path);
      result_.groups.push_back(group(prefix + layer.array_path, {{"weight_names", place_weights(layer, prefix)}}));
    }
    result_.groups.push_back(group(
        root,
        {{"layer_names", layers}, {"backend", std::string(kBackend)}, {"keras_version", std::string(kKerasVersion)}}));
    if (form_ == KerasForm::legacy_model) {
      compose_legacy_model();
    } else {
      // A file of weights alone has no place for the optimizer's state.
      for (const std::string& array : content_.description.optimizer) unplaced_.erase(array);
    }
  }

  std::vector<std::string> place_weights(const KerasLayer& layer, const std::string& prefix) {
    std::vector<std::string> weights;
    for (const KerasSlot& slot : legacy_slots(layer)) {
      weights.push_back(slot.array);
      place(kModelPrefix + slot.array, prefix + layer.array_path + "/" + slot.array);
    }
    return weights;
  }

  void compose_legacy_model() {
    // These two members alone: a legacy file has another place for the arguments of compile(), and none for the rest.
    result_.config = Json{{"class_name", member(config_, "class_name")}, {"config", member(config_, "config")}}.dump();
    std::vector<Hdf5Attribute> attributes = {{"backend", std::string(kBackend)},
                                             {"keras_version", std::string(kKerasVersion)}};
    const Json training = training_config();
    refuse_optimizers_that_keras_cannot_read(training);
    if (training.is_object()) attributes.push_back({"training_config", training.dump()});
    result_.groups.push_back(group("", std::move(attributes)));
    result_.optimizer = content_.description.optimizer;
    if (result_.optimizer.empty()) return;
    std::vector<std::string> weights;
    for (const std::string& array : result_.optimizer) {
      weights.push_back(array);
      place(array, std::string(kOptimizerWeights) + "/" + array);
    }
    result_.groups.push_back(group(kOptimizerWeights, {{"weight_names", weights}}));
  }

  // Keras's own files of this form with Lamb fail, too: it is missing in the list of classes that this form's reader
  // knows. Holds for Keras 3.15.
  void refuse_optimizers_that_keras_cannot_read(const Json& training) const {
    if (text_member(member(training, "optimizer_config"), "class_name") != "Lamb") return;
    refuse_form(form_,
                "Keras 3.15 cannot load a file of this form with the optimizer Lamb; write a .keras file, or a "
                ".weights.h5 file");
  }

  // The optimizer's own name, or Keras's name for its class.
  std::string optimizer_name() const {
    const Json training = training_config();
    const Json& optimizer = member(training, "optimizer_config");
    const std::string name = text_member(member(optimizer, "config"), "name");
    return name.empty() ? keras_snake_case(text_member(optimizer, "class_name")) : name;
  }

  // A legacy file keeps the arguments of compile() in an attribute of its own, an archive in the configuration.
  Json training_config() const {
    Json training = member(config_, "compile_config");
    if (!training.is_object()) return text_of_group("training_config");
    const Json& optimizer = member(training, "optimizer");
    training["optimizer_config"] = {{"class_name", member(optimizer, "class_name")},
                                    {"config", member(optimizer, "config")}};
    training.erase("optimizer");
    return training;
  }

  Json archive_config() const {
    Json config = config_;
    if (config.contains("compile_config")) return config;
    config["module"] = is_sequential(config_) ? "keras" : "keras.src.models.functional";
    config["registered_name"] = nullptr;
    Json compile = text_of_group("training_config");
    if (!compile.is_object()) return config;
    compile["optimizer"] = compile["optimizer_config"];
    compile.erase("optimizer_config");
    compile["optimizer"]["module"] = "keras.optimizers";
    compile["optimizer"]["registered_name"] = nullptr;
    config["compile_config"] = std::move(compile);
    return config;
  }

  // Only the root has these attributes. A text that is not JSON is an error that names the attribute.
  Json text_of_group(const std::string& attribute) const {
    for (const Hdf5Group& candidate : content_.description.groups) {
      const std::string text = candidate.path.empty() ? text_attribute(candidate.attributes, attribute) : "";
      if (!text.empty()) return parse_keras_json(text, fmt::format("the attribute {}", attribute));
    }
    return {};
  }

  const KerasContent& content_;
  const KerasForm form_;
  const Json& config_;
  const KerasModel model_;
  KerasDescription result_;
  std::set<std::string> unplaced_;
};

// Turns the paths of a whole-model file into those of a file of weights alone.
void drop_model(KerasContent& content) {
  KerasDescription& description = content.description;
  const std::string prefix = kModelWeightsPrefix;
  std::erase_if(content.arrays,
                [&](const NamedArray& array) { return !description.paths[array.name].starts_with(prefix); });
  std::erase_if(description.paths, [&](const auto& path) { return !path.second.starts_with(prefix); });
  // The prefix of the group is cut off, since the same groups lie at the root of a file of weights.
  for (auto& [array, path] : description.paths) path.erase(0, prefix.size());
  std::erase_if(description.groups,
                [&](const Hdf5Group& g) { return g.path != kModelWeights && !g.path.starts_with(prefix); });
  for (Hdf5Group& g : description.groups) g.path.erase(0, std::min(prefix.size(), g.path.size()));
  // The optimizer's state and the configuration belong to the model, which is dropped.
  description.optimizer.clear();
  description.config.clear();
}

}  // namespace

KerasContent lay_out(KerasContent content, KerasForm form) {
  if (content.description.config.empty()) {
    refuse_form(form,
                "it was read from a file without the model's configuration, which defines the order of its layers; "
                "convert the .keras file instead");
  }
  const Json config = parse_keras_json(content.description.config, "the model's configuration");
  content.description = Composer(content, config, form).compose();
  std::erase_if(content.arrays,
                [&](const NamedArray& array) { return !content.description.paths.contains(array.name); });
  return content;
}

KerasContent convert(KerasContent content, KerasForm form) {
  const KerasForm from = content.description.form;
  if (form == from) return content;
  if (from == KerasForm::archive && form == KerasForm::weights) {
    content.description.config.clear();
  } else if (from == KerasForm::legacy_model && form == KerasForm::legacy_weights) {
    // Both forms share their paths, so the file's own names stay, even of layers that nobody knows.
    drop_model(content);
  } else {
    return lay_out(std::move(content), form);
  }
  content.description.form = form;
  return content;
}

}  // namespace holdfast::format
