// Moves values between Keras's arrays and a savepoint's. Layers are matched by order and variables by name, because
// users name layers differently on the two sides. An optimizer's state is taken over only if all of it fits. Reasons:
// docs/decisions/exchange.md.

#include "keras/keras_savepoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "bytes/byte_source.h"
#include "holdfast/base/error.h"
#include "keras/keras_completion.h"
#include "keras/keras_config_writer.h"
#include "keras/keras_optimizer_state.h"
#include "keras/keras_reorder.h"
#include "keras_files/keras_adafactor.h"
#include "keras_files/keras_legacy.h"

namespace holdfast::format {
namespace {

// Only Normalization has a variable of this name.
constexpr std::string_view kCount = "count";

using ArraysByName = std::map<std::string, const NamedArray*, std::less<>>;

ArraysByName by_name(const std::vector<NamedArray>& arrays) {
  ArraysByName result;
  for (const NamedArray& array : arrays) result.emplace(array.name, &array);
  return result;
}

const NamedArray& get(const ArraysByName& arrays, const std::string& name) {
  const auto found = arrays.find(name);
  if (found != arrays.end()) return *found->second;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("the array {} of the model's layers is missing; give the complete savepoint", quoted_text(name)));
}

// The names of the savepoint's layers, by those in its Keras configuration.
using LayerNames = std::map<std::string, std::string>;

std::string layer_of(const KerasSlot& slot) {
  return slot.array.substr(0, slot.array.size() - slot.variable.size() - 1);
}

// "dense/kernel" as the savepoint names it.
std::string savepoint_array(const KerasSlot& slot, const LayerNames& names) {
  return names.at(layer_of(slot)) + "/" + slot.variable;
}

std::string slot_name(std::string_view slot, std::string_view variable) {
  return fmt::format("{}{}/{}", kOptimizerPrefix, slot, variable);
}

// Adds the optimizer's arrays in Keras's order.
void add_optimizer(const ArraysByName& savepoint, const Json& metadata, const KerasModel& model,
                   const LayerNames& names, KerasContent& content) {
  const auto add = [&](NamedArray array) {
    content.description.optimizer.push_back(array.name);
    content.arrays.push_back(std::move(array));
  };
  std::vector<KerasSlot> trainables = model.slots();
  // An optimizer keeps nothing for moving averages.
  std::erase_if(trainables, [](const KerasSlot& slot) { return !slot.is_trainable; });
  KerasOptimizerState state = keras_optimizer_state(metadata);
  for (NamedArray& array : state.first) add(std::move(array));
  std::vector<TrainableVariable> variables;
  for (const KerasSlot& trainable : trainables) {
    const std::string array = savepoint_array(trainable, names);
    variables.push_back({array, get(savepoint, kModelPrefix + array).shape});
  }
  for (const auto& [variable, slot] : slots_in_keras_order(state, variables)) {
    const KerasSlot& trainable = trainables[variable];
    const std::string variable_name = savepoint_array(trainable, names);
    const bool is_parameter = slot.begins_as_parameter && state.step == 0;
    const auto own = [&](std::string_view name) { return get(savepoint, slot_name(name, variable_name)); };
    NamedArray array = is_parameter ? get(savepoint, kModelPrefix + variable_name) : own(slot.holdfast);
    if (slot.kind != SlotKind::whole) {
      const NamedArray rows = own("row_velocity");
      const NamedArray columns = own("column_velocity");
      const std::vector<std::uint64_t>& shape = variables[variable].shape;
      const bool fits = rows.dtype == DType::f32 && columns.dtype == DType::f32 && rows.shape == shape &&
                        columns.shape == shape && std::ranges::find(shape, 0U) == shape.end();
      if (!fits) {
        throw Error(ErrorCode::invalid_file,
                    fmt::format("the state of Adafactor for {} is not f32 of the shape of its weights; use another "
                                "copy of the file",
                                quoted_text(variable_name)));
      }
      array = keras_adafactor_slot(slot.kind, rows, columns);
    }
    array.name = slot_name(slot.keras, trainable.array);
    add(std::move(array));
  }
  for (NamedArray& array : state.last) add(std::move(array));
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

[[noreturn]] void differ(const std::string& problem) {
  throw Error(ErrorCode::incompatible, fmt::format("the Keras weights do not fit the savepoint's model: {}", problem));
}

// A variable of the savepoint's model, and the Keras model's array for it.
struct Match {
  const KerasSlot* slot;
  std::string array;
};

// Finds the Keras model's array for each variable of the savepoint's model. Both must have the same layers in the
// same order; their names may differ. The order of a graph's layers depends on how it was described, so there equal
// names decide.
class Matcher {
 public:
  Matcher(const KerasDescription& description, const KerasModel& target, const LayerNames& names, bool is_chain)
      : description_(description), target_(target), names_(names), is_chain_(is_chain) {}

  std::vector<Match> match(const KerasModel* source) const {
    if (source != nullptr) return match_models(*source);
    if (description_.form == KerasForm::legacy_weights) return match_legacy();
    return match_paths();
  }

 private:
  std::vector<Match> match_models(const KerasModel& source) const {
    if (!source.is_complete())
      differ(
          "some of the Keras model's layers are of classes that Holdfast does not know; convert a model of known "
          "layers");
    std::vector<KerasSlot> found = source.slots();
    for (KerasSlot& slot : found) slot.array = kModelPrefix + slot.array;
    if (!is_chain_) {
      const auto ours = [&](const KerasSlot& slot) { return savepoint_array(slot, names_); };
      const auto theirs = [](const KerasSlot& slot) { return slot.array; };
      // The savepoint's own names first, and then those that it has in its Keras configuration.
      if (auto matches = match_names(found, ours); !matches.empty()) return matches;
      if (auto matches = match_names(found, theirs); !matches.empty()) return matches;
    }
    // By position, where names say nothing. Kinds of variables and shapes are still compared.
    return match_lists(target_.slots(), found);
  }

  // By the names that `name_of` gives to the target's variables. Empty unless each name is there, and no other.
  template <typename NameOf>
  std::vector<Match> match_names(const std::vector<KerasSlot>& found, const NameOf& name_of) const {
    std::set<std::string> names;
    for (const KerasSlot& slot : found) names.insert(slot.array);
    std::vector<Match> result;
    for (const KerasSlot& slot : target_.slots()) {
      const std::string name = kModelPrefix + name_of(slot);
      if (names.erase(name) == 0) return {};
      result.push_back({&slot, name});
    }
    // A Keras layer that is left over shows that the models are not the same.
    return names.empty() ? result : std::vector<Match>{};
  }

  // A legacy file lists the layers in order, and each layer's variables.
  std::vector<Match> match_legacy() const {
    const std::map<std::string, std::string> arrays = arrays_by_path();
    std::vector<KerasSlot> found;
    for (const std::string& layer : list_of("", "layer_names")) {
      for (const std::string& weight : list_of(layer, "weight_names")) {
        const auto array = arrays.find(layer + "/" + weight);
        if (array == arrays.end())
          differ(fmt::format("their file lists {}, which it does not have; save the model again with Keras",
                             quoted_text(weight)));
        found.push_back({.array = array->second,
                         .variable = legacy_variable_name(weight),
                         .weights_path = "",
                         // A legacy file does not say it, and nothing here asks.
                         .is_trainable = true});
      }
    }
    std::vector<KerasSlot> expected;
    for (const KerasLayer& layer : target_.layers()) {
      const std::vector<KerasSlot> slots = legacy_slots(layer);
      expected.insert(expected.end(), slots.begin(), slots.end());
    }
    return in_target_order(match_lists(expected, found), expected);
  }

  // `matches` point into `expected`, the result into the target.
  std::vector<Match> in_target_order(const std::vector<Match>& matches, const std::vector<KerasSlot>& expected) const {
    std::map<std::string, std::string> arrays;
    for (std::size_t i = 0; i < matches.size(); ++i) arrays[expected[i].array] = matches[i].array;
    std::vector<Match> result;
    for (const KerasSlot& slot : target_.slots()) result.push_back({&slot, arrays.at(slot.array)});
    return result;
  }

  std::vector<std::string> list_of(const std::string& path, const std::string& name) const {
    for (const Hdf5Group& group : description_.groups) {
      if (group.path == path) return list_attribute(group.attributes, name);
    }
    return {};
  }

  std::vector<Match> match_paths() const {
    const std::map<std::string, std::string> arrays = arrays_by_path();
    std::vector<Match> result;
    for (const KerasSlot& slot : target_.slots()) {
      const auto array = arrays.find(slot.weights_path);
      if (array == arrays.end()) {
        differ(fmt::format("layer \"{}\" has a {}, which the Keras file should have at \"{}\" but lacks",
                           layer_of(slot), slot.variable, slot.weights_path));
      }
      result.push_back({&slot, array->second});
    }
    // The file may have more variables than the savepoint's model.
    const auto count = static_cast<std::size_t>(std::count_if(
        arrays.begin(), arrays.end(), [](const auto& array) { return array.second.starts_with(kModelPrefix); }));
    if (count != result.size()) differ_in_count(result.size(), count);
    return result;
  }

  std::map<std::string, std::string> arrays_by_path() const {
    std::map<std::string, std::string> result;
    for (const auto& [array, path] : description_.paths) result.emplace(path, array);
    return result;
  }

  [[noreturn]] static void differ_in_count(std::size_t expected, std::size_t found) {
    differ(fmt::format("its layers have {} variables, but the Keras model has {}", expected, found));
  }

  static std::vector<Match> match_lists(const std::vector<KerasSlot>& expected, const std::vector<KerasSlot>& found) {
    std::vector<Match> result;
    for (std::size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
      // The kind of the variable tells a wrong order of layers, also where the shapes agree.
      if (!is_same_variable(found[i].variable, expected[i].variable)) {
        differ(fmt::format("layer \"{}\" has a {} where the Keras model has {}", layer_of(expected[i]),
                           expected[i].variable, quoted_text(found[i].array)));
      }
      result.push_back({&expected[i], found[i].array});
    }
    if (expected.size() != found.size()) differ_in_count(expected.size(), found.size());
    return result;
  }

  const KerasDescription& description_;
  const KerasModel& target_;
  const LayerNames& names_;
  const bool is_chain_;
};

// The Keras optimizer's class, as far as the file names it: "Adam", or the optimizer's own name "adam".
std::string optimizer_class(const KerasDescription& description, const Json& config) {
  const std::string compiled = text_member(member(member(config, "compile_config"), "optimizer"), "class_name");
  if (!compiled.empty()) return compiled;
  for (const Hdf5Group& group : description.groups) {
    const std::string training = group.path.empty() ? text_attribute(group.attributes, "training_config") : "";
    if (!training.empty()) {
      return text_member(member(parse_keras_json(training, "training_config"), "optimizer_config"), "class_name");
    }
    if (group.path == "optimizer/vars") return text_attribute(group.attributes, "name");
  }
  return "";
}

// "AdamW" and "adam_w_1" both become "adamw".
std::string plain_name(std::string_view class_name) {
  std::string plain;
  for (const char c : without_number(class_name)) {
    if (c != '_') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return plain;
}

// Replaces the values of a savepoint by those of a Keras model.
class Merger {
 public:
  // `completion` has arrays besides those of `keras`, and `config` the layers that have them; null without one.
  Merger(const ArraySet& keras, const std::vector<NamedArray>& completion, Json config,
         const KerasDescription& description, const ArraySet& like, const Json& metadata)
      : arrays_(by_name(keras.arrays)),
        description_(description),
        metadata_(metadata),
        target_config_(keras_config_of_savepoint(metadata)),
        target_(target_config_, "the savepoint's graph"),
        names_(savepoint_layer_names(metadata)),
        config_(std::move(config)),
        result_{.arrays = like.arrays, .metadata = like.metadata} {
    for (const NamedArray& array : completion) arrays_.insert_or_assign(array.name, &array);
    // A file of weights has no configuration. Then paths or positions decide.
    if (config_.is_null()) return;
    source_.emplace(config_, "the Keras model's configuration");
    after_flatten_ = variables_after_flatten(*source_);
  }

  ArraySet merge() {
    for (NamedArray& array : result_.arrays) targets_.emplace(array.name, &array);
    const Matcher matcher(description_, target_, names_, is_sequential(target_config_));
    matches_ = matcher.match(source_ ? &*source_ : nullptr);
    for (const Match& match : matches_) {
      // Keras counts the samples of which a layer's statistics are, and computes nothing from it.
      if (match.slot->variable != kCount) replace(kModelPrefix + name_of(match), match.array, match);
    }
    merge_optimizer();
    return std::move(result_);
  }

 private:
  // The variable's name in the savepoint: "dense/kernel".
  std::string name_of(const Match& match) const { return savepoint_array(*match.slot, names_); }

  void replace(const std::string& name, const std::string& keras_name, const Match& match,
               SlotKind kind = SlotKind::whole) {
    const auto target = targets_.find(name);
    if (target == targets_.end()) differ(fmt::format("the savepoint lacks its array {}", quoted_text(name)));
    NamedArray source = get(arrays_, keras_name);
    if (kind != SlotKind::whole && source.shape == keras_slot_shape(kind, target->second->shape)) {
      const auto repeated = savepoint_adafactor_slot(kind, source, target->second->shape);
      if (!repeated) return;
      source = *repeated;
    }
    // Statistics over all axes are a scalar in Keras.
    if (source.shape.empty() && target->second->shape == std::vector<std::uint64_t>{1}) source.shape = {1};
    const std::string place = fmt::format("layer \"{}\": {}", names_.at(layer_of(*match.slot)), match.slot->variable);
    if (source.shape != target->second->shape) {
      differ(fmt::format("{} has shape {}, but the Keras model's \"{}\" has {}", place,
                         shape_text(target->second->shape), keras_name, shape_text(source.shape)));
    }
    NamedArray array = std::move(source);
    array.name = name;
    if (!widen_to_f32(array)) {
      differ(fmt::format("{} is f32, but the Keras model's \"{}\" is {}; save it with float32 weights", place,
                         keras_name, holdfast::name(array.dtype)));
    }
    reorder(array, match, place);
    *target->second = std::move(array);
  }

  void reorder(NamedArray& array, const Match& match, const std::string& place) const {
    const auto found = after_flatten_.find(match.array.substr(std::string_view(kModelPrefix).size()));
    if (found == after_flatten_.end()) return;
    // Flattens are numbered in both models, since their names may differ.
    std::size_t number = 0;
    for (const KerasLayer& layer : target_.layers()) {
      if (layer.class_name != "Flatten" || number++ != found->second) continue;
      if (reorder_rows(array, image_before(metadata_, names_.at(layer.array_path)))) return;
    }
    differ(fmt::format(
        "{} follows a Flatten of channels-first images, but the savepoint's model has no Flatten of that size", place));
  }

  void merge_optimizer() {
    std::vector<Match> trainables = matches_;
    std::erase_if(trainables, [](const Match& match) { return !match.slot->is_trainable; });
    const KerasOptimizerState expected = keras_optimizer_state(metadata_);
    std::vector<TrainableVariable> variables;
    for (const Match& match : trainables) {
      const std::string array = name_of(match);
      variables.push_back({array, targets_.at(kModelPrefix + array)->shape});
    }
    const std::vector<SlotOfVariable> slots = slots_in_keras_order(expected, variables);
    // Whole or not at all: momentum of other weights would push these in a wrong direction.
    const auto state = optimizer_state(slots, trainables, expected.last.size());
    // The step belongs to the optimizer's state. Without that it stays the step of the savepoint.
    if (!state) return reset_optimizer();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const Match& match = trainables[slots[i].variable];
      replace(slot_name(slots[i].slot.holdfast, name_of(match)), (*state)[i], match, slots[i].slot.kind);
    }
    take_step();
  }

  void reset_optimizer() {
    for (NamedArray& array : result_.arrays) {
      if (array.name.starts_with(kOptimizerPrefix)) array.bytes = initial_slot_bytes(array, result_.arrays, metadata_);
    }
  }

  // Returns the array of each slot; empty if the file's state is of another optimizer, or one with other options.
  // `scalars` counts what follows the slots.
  std::optional<std::vector<std::string>> optimizer_state(const std::vector<SlotOfVariable>& slots,
                                                          const std::vector<Match>& trainables,
                                                          std::size_t scalars) const {
    std::vector<std::string> state = listed_state();
    if (!is_same_optimizer() || state.size() != slots.size() + scalars) return std::nullopt;
    // Keras 2 listed some scalars before the slots.
    for (std::size_t i = slots.size(); i < state.size(); ++i) {
      if (!get(arrays_, state[i]).shape.empty()) return std::nullopt;
    }
    state.resize(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const Match& match = trainables[slots[i].variable];
      std::string name = slot_name(slots[i].slot.keras, match.array.substr(std::string_view(kModelPrefix).size()));
      if (arrays_.contains(name)) {
        state[i] = std::move(name);
      } else if (!is_numbered(state[i])) {
        // The file's optimizer was understood, and keeps something else: RMSprop has several options with a slot.
        return std::nullopt;
      }
    }
    return state;
  }

  bool is_same_optimizer() const {
    // Adam and AdamW have the same state.
    const auto family = [](const std::string& kind) { return kind == "adamw" ? "adam" : kind; };
    const std::string ours = text_member(member(member(metadata_, "configuration"), "optimizer"), "kind");
    return family(plain_name(optimizer_class(description_, config_))) == family(plain_name(ours));
  }

  // The file's list without the iteration and the rate.
  std::vector<std::string> listed_state() const {
    std::vector<std::string> state;
    for (const std::string& array : description_.optimizer) {
      if (array != iteration_name() && array != kOptimizerPrefix + std::string("learning_rate")) state.push_back(array);
    }
    return state;
  }

  // "optimizer/7" says nothing but its place in the list.
  static bool is_numbered(std::string_view array) {
    return array.find_first_not_of("0123456789", std::string_view(kOptimizerPrefix).size()) == std::string_view::npos;
  }

  static std::string iteration_name() { return kOptimizerPrefix + std::string("iteration"); }

  void take_step() {
    const auto found = arrays_.find(iteration_name());
    if (found == arrays_.end()) return;
    std::int64_t step = 0;
    const NamedArray& count = *found->second;
    const bool is_count = (count.dtype == DType::i32 || count.dtype == DType::i64) && count.shape.empty() &&
                          count.bytes.size() == size_bytes(count.dtype);
    if (!is_count) return;
    // Both are little-endian, so a short count fills the lower half.
    std::memcpy(&step, count.bytes.data(), count.bytes.size());
    if (step < 0) differ("the Keras optimizer's count of iterations is negative");
    Json metadata = metadata_;
    metadata["step"] = step_of_last_compile(metadata_) + step;
    result_.metadata = metadata.dump(1);
  }

  ArraysByName arrays_;
  const KerasDescription& description_;
  const Json& metadata_;
  const Json target_config_;
  const KerasModel target_;
  const LayerNames names_;
  const Json config_;
  std::optional<KerasModel> source_;
  std::map<std::string, std::size_t> after_flatten_;
  ArraySet result_;
  std::map<std::string, NamedArray*, std::less<>> targets_;
  std::vector<Match> matches_;
};

}  // namespace

KerasContent keras_from_savepoint(const ArraySet& savepoint, const Json& metadata) {
  const Json config = keras_config_of_savepoint(metadata);
  const KerasModel model(config, "the savepoint's graph");
  KerasContent content;
  content.description.config = config.dump();
  const LayerNames names = savepoint_layer_names(metadata);
  std::map<std::string, std::string> renamed;  // by the savepoint's name
  for (const KerasSlot& slot : model.slots()) {
    renamed.emplace(kModelPrefix + savepoint_array(slot, names), kModelPrefix + slot.array);
    if (slot.variable == kCount) {
      content.arrays.push_back({kModelPrefix + slot.array, DType::i32, {}, std::vector<std::byte>(4)});
    }
  }
  std::set<std::string> scalars;
  for (const std::string& array : scalar_arrays(read_model_graph(metadata))) scalars.insert(kModelPrefix + array);
  for (const NamedArray& array : savepoint.arrays) {
    if (!array.name.starts_with(kModelPrefix)) continue;
    content.arrays.push_back(array);
    if (scalars.contains(array.name)) content.arrays.back().shape.clear();
    const auto found = renamed.find(array.name);
    if (found != renamed.end()) content.arrays.back().name = found->second;
  }
  // Without an optimizer in the configuration, Keras would not know what these arrays are.
  if (config.contains("compile_config")) add_optimizer(by_name(savepoint.arrays), metadata, model, names, content);
  return content;
}

ArraySet savepoint_from_keras(const ArraySet& keras, const KerasDescription& description, const ArraySet& like,
                              const Json& like_metadata) {
  std::vector<NamedArray> completion;
  Json config;
  if (!description.config.empty()) {
    const std::string label = "the Keras model's configuration";
    config = parse_keras_json(description.config, label);
    try {
      completion = completing_arrays(read_keras_functional(config, label), keras);
      config = completed_config(std::move(config));
    } catch (const Error&) {
      // A model of other layers has nothing to complete. The comparison with the savepoint says what differs.
      completion.clear();
    }
  }
  return Merger(keras, completion, std::move(config), description, like, like_metadata).merge();
}

}  // namespace holdfast::format
