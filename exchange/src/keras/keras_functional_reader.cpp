// A functional model lists layers, and for each its calls ("nodes") with the outputs of other calls that they take
// (keras_container.h). They are followed in an order in which each call comes after those that it needs. Models in
// models need recursion, within a limit. Each call of a nested model repeats its calls, so their number has a limit,
// too. See docs/decisions/exchange.md.

#include "keras/keras_functional_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "bytes/byte_source.h"
#include "holdfast/base/error.h"
#include "keras/keras_call_mode.h"
#include "keras/keras_container.h"
#include "keras/keras_input_reader.h"
#include "keras/keras_names.h"
#include "keras_files/keras_model.h"
#include "keras_files/keras_path.h"
#include "keras_layers/keras_layer_reader.h"

namespace holdfast::format {
namespace {

constexpr std::size_t kMaxNestedModels = 64;
// All entries of layers and their calls, counted again with each call of a nested model.
constexpr std::size_t kMaxEntries = 20'000;

using Values = std::vector<ModelGraphSource>;

class FunctionalReader {
 public:
  explicit FunctionalReader(const std::string& label) : label_(label) {}

  KerasFunctional read(const Json& config) {
    if (!layers_of_config(config).is_array()) {
      // A subclassed model is code of an application, of which the file has a name and no graph.
      refuse_keras_layer(layer_name(config), text_member(config, "class_name"),
                         "is neither a Sequential nor a functional model; save the model as one of these");
    }
    result_.graph.outputs = is_sequential(config) ? read_sequential(config) : read_functional(config);
    // Last, since only all calls together show whether an input is read as ids alone.
    make_ids_integers();
    result_.graph = in_holdfast_order(result_.graph);
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const std::string& problem) const { refuse_keras_model(label_, problem); }

  // A Sequential has one input, which its configuration need not name.
  Values read_sequential(const Json& config) {
    const Json& options = member(config, "config");
    const Json* shape = &member(options, "build_input_shape");
    const Json& layers = layers_of_config(config);
    if (!layers.empty()) {
      const Json& first = member(layers[0], "config");
      // Keras 2 wrote the shape of the input at the first layer, and not at the model.
      for (const char* key : {"batch_shape", "batch_input_shape"}) {
        if (member(first, key).is_array()) shape = &member(first, key);
      }
    }
    const bool has_input = !layers.empty() && text_member(layers[0], "class_name") == "InputLayer";
    add_input(has_input ? layer_name(layers[0]) : "input", *shape, has_input ? member(layers[0], "config") : Json());
    return call_model(config, "", {ModelGraphSource{}});
  }

  Values read_functional(const Json& config) {
    const KerasContainer model(config, "", label_);
    Values inputs;
    for (const KerasReference& reference : model.references("input_layers")) {
      const Json* options = nullptr;
      for (const KerasEntry& entry : model.entries()) {
        if (entry.name == reference.layer && entry.class_name == "InputLayer") options = &member(*entry.json, "config");
      }
      if (options == nullptr)
        refuse(fmt::format("lists {} among its inputs, which is not an InputLayer", quoted_text(reference.layer)));
      const Json& shape = member(*options, "batch_shape");
      inputs.push_back({.index = result_.graph.inputs.size()});
      add_input(reference.layer, shape.is_array() ? shape : member(*options, "batch_input_shape"), *options);
    }
    name_outputs(member(member(config, "config"), "output_layers"));
    return call_model(config, "", inputs);
  }

  // A model that returns its outputs by name has an object of them, which the JSON library sorts as Keras does.
  void name_outputs(const Json& outputs) {
    if (!outputs.is_object()) return;
    for (const auto& [name, reference] : outputs.items()) {
      const bool is_name =
          is_layer_name(name) && reference.is_array() && !reference.empty() && reference[0].is_string();
      if (is_name) result_.graph.output_names.push_back(name);
    }
    if (result_.graph.output_names.size() == outputs.size()) return;
    result_.graph.output_names.clear();
    result_.notes.push_back("the names of the outputs are left out, since Holdfast does not accept all of them");
  }

  void add_input(const std::string& name, const Json& batch_shape, const Json& options) {
    result_.graph.inputs.push_back(read_keras_input(name, batch_shape, options));
  }

  // Adds the calls of a model's layers and returns its outputs.
  Values call_model(const Json& config, const std::string& path, const Values& inputs) {
    if (++nesting_ > kMaxNestedModels) refuse(fmt::format("nests models deeper than {} levels", kMaxNestedModels));
    // Counted over the whole file: a model that is called twice on each level doubles the number each time.
    count_entries(layers_of_config(config).size());
    KerasContainer model(config, path, label_);
    Values outputs = is_sequential(config) ? call_in_turn(model, path, inputs) : call_nodes(model, path, inputs);
    --nesting_;
    return outputs;
  }

  void count_entries(std::size_t count) {
    entries_ += count;
    if (entries_ > kMaxEntries) refuse(fmt::format("has more than {} layers and calls of layers", kMaxEntries));
  }

  Values call_in_turn(const KerasContainer& model, const std::string& path, const Values& inputs) {
    if (inputs.size() != 1) {
      refuse_keras_layer(path, "Sequential", fmt::format("is called with {} values instead of 1", inputs.size()));
    }
    Values values = inputs;
    for (const KerasEntry& entry : model.entries()) {
      // A Sequential may have one, which only says its shape.
      if (entry.class_name == "InputLayer") continue;
      values = call_entry(model, entry, {.entry = 0, .inputs = {}, .arguments = {std::nullopt}}, 0, values);
      if (values.size() != 1) refuse_keras_layer(model.path_of(entry), entry.class_name, "has several outputs");
    }
    return values;
  }

  Values call_nodes(KerasContainer& model, const std::string& path, const Values& inputs) {
    model.read_nodes();
    count_entries(model.nodes().size());
    std::map<std::string, std::size_t> places;  // of the inputs, by name
    for (const KerasReference& input : model.references("input_layers")) places.emplace(input.layer, places.size());
    // A nested model is called with other values than its own inputs, one for each in their order.
    if (places.size() != inputs.size()) {
      refuse(fmt::format("calls {} with {} values instead of {}", quoted_text(path), inputs.size(), places.size()));
    }
    const std::vector<KerasReference> outputs = model.references("output_layers");
    std::map<std::size_t, Values> values;  // by node
    const auto value_of = [&](const KerasReference& reference, bool counts_model) {
      const Values& found = values.at(model.node_of(reference, counts_model));
      if (reference.tensor < 0 || reference.tensor >= static_cast<std::int64_t>(found.size())) {
        refuse(fmt::format("names output {} of layer {}, which has {}", reference.tensor, quoted_text(reference.layer),
                           found.size()));
      }
      return found[static_cast<std::size_t>(reference.tensor)];
    };
    for (const std::size_t place : model.nodes_in_order(outputs)) {
      const KerasNode& node = model.nodes()[place];
      const KerasEntry& entry = model.entries()[node.entry];
      if (entry.class_name == "InputLayer") {
        const auto input = places.find(entry.name);
        // An InputLayer that is not an input of the model would have no value.
        if (input == places.end()) model.refuse(fmt::format("lacks {} among its inputs", quoted_text(entry.name)));
        values[place] = {inputs[input->second]};
        continue;
      }
      Values arguments;
      // Calls come in an order in which the values that one needs are there.
      for (const KerasReference& input : node.inputs) arguments.push_back(value_of(input, model.has_old_nodes(node)));
      const auto number = std::find(entry.nodes.begin(), entry.nodes.end(), place) - entry.nodes.begin();
      values[place] = call_entry(model, entry, node, static_cast<std::size_t>(number), arguments);
    }
    Values results;
    for (const KerasReference& output : outputs) results.push_back(value_of(output, true));
    return results;
  }

  Values call_entry(const KerasContainer& model, const KerasEntry& entry, const KerasNode& node, std::size_t number,
                    const Values& inputs) {
    const std::string path = model.path_of(entry);
    if (inputs.empty()) model.refuse(fmt::format("calls layer {} without a value", quoted_text(path)));
    check_name(entry, path);
    if (!mode_.begin(node.training)) return call_named(entry, path, node, number, inputs);
    Values values = call_named(entry, path, node, number, inputs);
    for (std::string& sentence : mode_.end(path)) {
      // Several calls of a layer have one note.
      if (noted_.insert(sentence).second) result_.notes.push_back(std::move(sentence));
    }
    return values;
  }

  Values call_named(const KerasEntry& entry, const std::string& path, const KerasNode& node, std::size_t number,
                    const Values& inputs) {
    if (entry.is_model) return call_model(*entry.json, path, inputs);
    if (entry.class_name == "TimeDistributed") return call_distributed(entry, path, node, number, inputs);
    KerasCall call{.path = path,
                   .class_name = entry.class_name,
                   .is_operation = entry.is_operation,
                   .config = member(*entry.json, "config"),
                   .inputs = {},
                   .arguments = node.arguments,
                   .index = node.index,
                   .flags = node.flags,
                   .named = node.named};
    // Some options count axes from the end, or are only right for a number of axes.
    for (const ModelGraphSource& input : inputs) call.inputs.push_back(shape_of(input));
    const std::vector<HoldfastStep> steps = steps_of(call);
    const Values values = with_fitting_types(entry, path, number, steps.front(), inputs, node.is_reversed);
    return call_steps(entry, path, node, number, steps, values);
  }

  std::vector<HoldfastStep> steps_of(const KerasCall& call) {
    std::vector<std::string> notes;
    std::vector<HoldfastStep> steps = steps_of_keras_call(call, notes);
    // A layer that is called twice has one note.
    if (noted_.insert(call.path).second) {
      result_.notes.insert(result_.notes.end(), notes.begin(), notes.end());
    }
    return steps;
  }

  // The layers that stand for one call of a Keras layer, one after another.
  Values call_steps(const KerasEntry& entry, const std::string& path, const KerasNode& node, std::size_t number,
                    const std::vector<HoldfastStep>& steps, const Values& inputs) {
    Values values = inputs;
    for (const HoldfastStep& step : steps) {
      add_weights(path, step);
      const std::size_t layer = layer_named(name_of_call(path, step, number), path, step);
      // Another call of the layer may have frozen it.
      if (is_frozen_with_weights(entry)) result_.graph.layers[layer].is_frozen = true;
      mode_.apply_to(result_.graph.layers[layer]);
      // An option that is an argument of a call in Keras belongs to the layer here.
      if (result_.graph.layers[layer].config != step.config && !(node.flags.empty() && node.named.empty())) {
        refuse_keras_layer(path, entry.class_name,
                           "is called several times with different arguments; make a layer for each of them");
      }
      values = {add_call(layer, values, node.is_reversed)};
      for (std::size_t output = 1; output < output_count(result_.graph.layers[layer]); ++output) {
        values.push_back({.call = values.front().call, .index = output});
      }
    }
    return values;
  }

  // Operations have no weights, so each of their calls may be a layer of its own. Steps of the first call end in
  // numbers, so the number of a call needs a word before it.
  static std::string name_of_call(const std::string& path, const HoldfastStep& step, std::size_t number) {
    const bool is_repeated = step.kind == "Operation" && number > 0;
    return path + (is_repeated ? fmt::format(".call{}", number) : "") + step.suffix;
  }

  // A layer of elements, or of the last axis alone, takes all steps at once. Any other one is called for each step, as
  // time_distributed() does it. Either has its weights under the names that Keras has them under.
  Values call_distributed(const KerasEntry& entry, const std::string& path, const KerasNode& node, std::size_t number,
                          const Values& inputs) {
    const MaybeShape sequence = shape_of(inputs.front());
    if (inputs.size() != 1 || !sequence || sequence->size() < 2) {
      refuse_keras_layer(path, entry.class_name, "needs one sequence, of a shape that can be derived");
    }
    // The name of the inner layer is not used: Keras stores its weights under "layer" of the wrapper.
    const Json& inner = member(member(*entry.json, "config"), "layer");
    const std::string inner_path = path + "/layer";
    const KerasCall call{.path = inner_path,
                         .class_name = text_member(inner, "class_name"),
                         .config = member(inner, "config"),
                         .inputs = {SampleShape(sequence->begin() + 1, sequence->end())}};
    const std::vector<HoldfastStep> steps = steps_of(call);
    const Values values = with_fitting_types(entry, path, number, steps.front(), inputs, false);
    if (takes_further_axes(steps)) return call_steps(entry, inner_path, node, number, steps, values);
    const std::int64_t count = sequence->front();
    Values rows;
    // A file may ask for any number of steps; add_call() ends this at kMaxCalls.
    for (std::int64_t step = 0; step < count; ++step) {
      // Each step has a number of its own among all calls of the layer.
      const std::size_t place = number * static_cast<std::size_t>(count) + static_cast<std::size_t>(step);
      Values value = call_operation(path, fmt::format(".{}.slice", place), values,
                                    {{"operation", "slice"}, {"axis", 0}, {"begin", step}, {"end", step + 1}});
      value = call_operation(path, fmt::format(".{}.step", place), value,
                             {{"operation", "reshape"}, {"shape", *call.inputs.front()}});
      value = call_steps(entry, inner_path, node, place, steps, value);
      const MaybeShape shape = shape_of(value.front());
      if (value.size() != 1 || !shape) {
        refuse_keras_layer(path, entry.class_name, "repeats a layer without one output of a known shape");
      }
      SampleShape row = *shape;
      row.insert(row.begin(), 1);
      rows.push_back(
          call_operation(path, fmt::format(".{}.row", place), value, {{"operation", "reshape"}, {"shape", row}})
              .front());
    }
    return call_operation(path, number == 0 ? "" : fmt::format(".call{}", number), rows,
                          {{"operation", "concatenate"}, {"axis", 0}});
  }

  // Whether these layers compute the same for each step where there is an axis of steps before those of the samples.
  static bool takes_further_axes(const std::vector<HoldfastStep>& steps) {
    static constexpr std::array<std::string_view, 14> kKinds = {"Activation",
                                                                "AlphaDropout",
                                                                "Dense",
                                                                "Dropout",
                                                                "ELU",
                                                                "Embedding",
                                                                "GaussianDropout",
                                                                "GaussianNoise",
                                                                "LeakyReLU",
                                                                "Rescaling",
                                                                "LayerNormalization",
                                                                "ReLU",
                                                                "Softmax",
                                                                "RMSNormalization"};
    const auto fits = [](const HoldfastStep& step) {
      const Json& axis = member(step.config, "axis");
      return std::ranges::find(kKinds, step.kind) != kKinds.end() && (axis.is_null() || axis == -1);
    };
    return std::ranges::all_of(steps, fits);
  }

  Values call_operation(const std::string& path, const std::string& suffix, const Values& inputs, Json config) {
    const HoldfastStep step{.suffix = suffix, .kind = "Operation", .config = std::move(config)};
    return {add_call(layer_named(path + suffix, path, step), inputs)};
  }

  // A layer without weights has nothing that could be trained, and is not written as frozen.
  static bool is_frozen_with_weights(const KerasEntry& entry) {
    if (flag_member(member(*entry.json, "config"), "trainable", true)) return false;
    // These have their weights in parts.
    static constexpr std::array<std::string_view, 7> kWrappers = {
        "Bidirectional", "GRU", "GroupQueryAttention", "LSTM", "MultiHeadAttention", "SimpleRNN", "TimeDistributed"};
    if (std::ranges::find(kWrappers, entry.class_name) != kWrappers.end()) return true;
    const auto variables = keras_variables(entry.class_name, member(*entry.json, "config"));
    return variables && !variables->empty();
  }

  // Integers reach only the layers that take them. Keras converts them before a layer multiplies them by weights, and
  // a layer of Holdfast does that here.
  Values with_fitting_types(const KerasEntry& entry, const std::string& path, std::size_t number,
                            const HoldfastStep& step, const Values& inputs, bool is_reversed) {
    Values values = inputs;
    const bool takes_ids = step.kind == "Embedding" || (step.kind == "ReversibleEmbedding" && !is_reversed);
    for (std::size_t place = 0; place < values.size(); ++place) {
      if (takes_ids) check_ids(entry, path, values[place]);
      if (!is_integer(values[place]) || takes_ids || takes_integers(step)) continue;
      std::string name = fmt::format("{}.cast", path);
      if (place + number > 0) name += fmt::format(".{}", number * inputs.size() + place);
      const HoldfastStep cast{.suffix = "", .kind = "Operation", .config = {{"operation", "cast"}}};
      values[place] = add_call(layer_named(name, path, cast), {values[place]});
    }
    return values;
  }

  static bool keeps_type(const std::string& kind) {
    return kind == "Flatten" || kind == "Reshape" || kind == "Permute" || kind.starts_with("Cropping");
  }

  static bool takes_integers(const HoldfastStep& step) {
    const bool is_cast = step.kind == "Operation" && text_member(step.config, "operation") == "cast";
    return is_cast || step.kind == "Rescaling" || keeps_type(step.kind);
  }

  bool is_integer(const ModelGraphSource& source) const {
    if (source.call != ModelGraphSource::kModelInput) return integers_[source.call];
    const std::string& dtype = result_.graph.inputs[source.index].dtype;
    return dtype != "f32" && dtype != "bf16";
  }

  // Keras takes ids as floats and rounds them; for Holdfast they are integers.
  void check_ids(const KerasEntry& entry, const std::string& path, const ModelGraphSource& ids) {
    if (is_integer(ids)) return;
    if (ids.call != ModelGraphSource::kModelInput) {
      refuse_keras_layer(path, entry.class_name,
                         "gets ids that another layer computes as floats; give it an input of the model of type int32");
    }
    float_ids_.insert(ids.index);
  }

  // Keras's inputs are of float32 unless they are given a type, also those that hold ids.
  void make_ids_integers() {
    ModelGraph& graph = result_.graph;
    for (const std::size_t input : float_ids_) {
      for (std::size_t place = 0; place < graph.calls.size(); ++place) {
        const ModelGraphCall& call = graph.calls[place];
        const bool takes_it = std::count(call.inputs.begin(), call.inputs.end(), ModelGraphSource{.index = input}) > 0;
        const std::string& kind = graph.layers[call.layer].kind;
        const bool takes_ids = kind == "Embedding" || (kind == "ReversibleEmbedding" && !reversed_.contains(place));
        if (!takes_it || takes_ids) continue;
        refuse_keras_layer(graph.inputs[input].name, "InputLayer",
                           "holds ids of an Embedding and floats of another layer; give the model two inputs");
      }
      graph.inputs[input].dtype = "i32";
      result_.notes.push_back(fmt::format("input {} is of float32 in Keras; Holdfast takes its ids as i32",
                                          quoted_text(graph.inputs[input].name)));
    }
  }

  void add_weights(const std::string& path, const HoldfastStep& step) {
    for (ConstantWeight weight : step.weights) {
      weight.name = fmt::format("{}{}/{}", path, step.suffix, weight.name);
      // A layer that is called twice has its weights once.
      if (!constants_.insert(weight.name).second) continue;
      std::int64_t elements = 1;
      for (const std::int64_t extent : weight.shape) elements *= extent;
      constant_elements_ += elements;
      if (constant_elements_ > ConstantWeight::kMaxElements) {
        refuse(fmt::format("lacks weights of more than {} numbers in all", ConstantWeight::kMaxElements));
      }
      result_.weights.push_back(std::move(weight));
    }
  }

  void check_name(const KerasEntry& entry, const std::string& path) const {
    if (is_layer_name(entry.name)) return;
    refuse_keras_layer(path, entry.class_name,
                       "has a name that Holdfast does not accept; name it with at most 80 letters, digits and "
                       "characters of \"_-.\"");
  }

  // The layer of this name, which may have been called before.
  std::size_t layer_named(const std::string& name, const std::string& path, const HoldfastStep& step) {
    const auto [place, is_new] = layers_.emplace(name, result_.graph.layers.size());
    // A second call of one Keras layer shares the layer here too, and with it the weights.
    const bool is_same = !is_new && owners_.at(name) == path;
    if (!is_new && !is_same) {
      refuse(fmt::format("needs a layer {} for {}, but another layer has that name", quoted_text(name),
                         quoted_text(path)));
    }
    if (is_new) {
      if (result_.graph.layers.size() == ModelGraph::kMaxCalls) refuse_size();
      owners_.emplace(name, path);
      result_.graph.layers.push_back({.kind = step.kind, .name = name, .config = step.config});
    }
    return place->second;
  }

  ModelGraphSource add_call(std::size_t layer, const Values& inputs, bool is_reversed = false) {
    ModelGraph& graph = result_.graph;
    if (graph.calls.size() == ModelGraph::kMaxCalls) refuse_size();
    std::vector<MaybeShape> shapes;
    for (const ModelGraphSource& input : inputs) shapes.push_back(shape_of(input));
    // A shape that cannot be derived is an error only for a layer that needs it.
    shapes_.push_back(shapes_after(graph.layers[layer], shapes, is_reversed));
    if (is_reversed) reversed_.insert(graph.calls.size());
    integers_.push_back(keeps_type(graph.layers[layer].kind) && is_integer(inputs.front()));
    graph.calls.push_back({.layer = layer, .inputs = inputs});
    return {.call = graph.calls.size() - 1, .index = 0};
  }

  [[noreturn]] void refuse_size() const {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("the Keras model cannot become a model of Holdfast: it has more than {} calls of layers, and "
                    "no model of Holdfast has more; make it smaller",
                    ModelGraph::kMaxCalls));
  }

  MaybeShape shape_of(const ModelGraphSource& source) const {
    if (source.call == ModelGraphSource::kModelInput) return result_.graph.inputs[source.index].shape;
    const OutputShapes& outputs = shapes_[source.call];
    return source.index < outputs.size() ? outputs[source.index] : std::nullopt;
  }

  const std::string& label_;
  KerasFunctional result_;
  std::vector<OutputShapes> shapes_;  // of the calls
  std::vector<bool> integers_;        // whether a call's output is one of integers
  std::set<std::size_t> float_ids_;   // inputs of floats that an Embedding takes
  std::set<std::size_t> reversed_;    // calls of a ReversibleEmbedding that lead from vectors to ids
  std::set<std::string> constants_;   // names of weights that Keras's layers lack
  std::int64_t constant_elements_ = 0;
  std::map<std::string, std::size_t> layers_;  // by name
  std::map<std::string, std::string> owners_;  // name of a layer -> path of the Keras layer that it belongs to
  std::set<std::string> noted_;
  KerasCallMode mode_;
  std::size_t nesting_ = 0;
  std::size_t entries_ = 0;
};

}  // namespace

KerasFunctional read_keras_functional(const Json& config, const std::string& label) {
  return FunctionalReader(label).read(config);
}

}  // namespace holdfast::format
