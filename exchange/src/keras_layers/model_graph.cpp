// Both texts become one form, so that nothing else here knows that there are two. A savepoint may come from anybody, so
// each source is checked to lie before its call, and later code follows sources without a thought of cycles. See
// docs/decisions/models.md.

#include "keras_layers/model_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "bytes/byte_source.h"
#include "holdfast/base/error.h"
#include "holdfast/base/shape_bytes.h"
#include "keras_layers/keras_layer_table.h"

namespace holdfast::format {
namespace {

constexpr const char* kChainFormat = "holdfast.sequential";
constexpr const char* kModelFormat = "holdfast.model";

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kInputTypes = {{{"float32", "f32"},
                                                                                       {"bfloat16", "bf16"},
                                                                                       {"int32", "i32"},
                                                                                       {"int64", "i64"},
                                                                                       {"uint8", "u8"},
                                                                                       {"uint16", "u16"},
                                                                                       {"bool", "boolean"}}};

const Json& list_member(const Json& graph, const char* key) {
  const Json& list = member(graph, key);
  if (list.is_array()) return list;
  refuse_savepoint(fmt::format("its graph has no list of {}; give a savepoint of a Sequential or a Model", key));
}

// Shapes decide how much memory later code takes, so the number of elements is bounded before anything is allocated.
SampleShape shape_member(const Json& object, const char* key) {
  const Json& list = member(object, key);
  SampleShape shape;
  constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
  std::int64_t elements = 1;
  for (const Json& extent : list.is_array() ? list : Json::array()) {
    const std::int64_t size = integer_value(extent).value_or(0);
    // Divided first, so that no product of extents overflows.
    if (size < 1 || size > kMostElements / elements) {
      refuse_savepoint("its graph has an input shape with an impossible extent; use another savepoint");
    }
    if (shape.size() == kMaxAxes) {
      refuse_savepoint(fmt::format("its graph has an input of more than {} axes; use another savepoint", kMaxAxes));
    }
    shape.push_back(size);
    elements *= shape.back();
  }
  if (!list.is_array()) refuse_savepoint("its graph has no input shape; give a savepoint of a Sequential or a Model");
  return shape;
}

void read_layers(const Json& json, ModelGraph& graph) {
  const Json& layers = list_member(json, "layers");
  // In a chain these are the calls, too.
  if (layers.size() > ModelGraph::kMaxCalls) {
    refuse_savepoint(fmt::format("its graph has more than {} layers; use another savepoint", ModelGraph::kMaxCalls));
  }
  for (const Json& layer : layers) {
    const Json& config = member(layer, "config");
    graph.layers.push_back({.kind = text_member(layer, "kind"),
                            .name = text_member(layer, "name"),
                            // A layer without options has an empty object, so later code looks up options without a
                            // check.
                            .config = config.is_object() ? config : Json::object(),
                            .is_frozen = !flag_member(layer, "trainable", true)});
  }
}

std::optional<std::int64_t> integer_at(const Json& list, std::size_t place) {
  return list.is_array() && list.size() == 2 ? integer_value(list[place]) : std::nullopt;
}

std::vector<ModelGraphSource> read_sources(const Json& object, const char* key, const ModelGraph& graph) {
  std::vector<ModelGraphSource> sources;
  for (const Json& source : list_member(object, key)) {
    // -1 stands for an input of the model. -2 is never valid, so a missing number is refused below.
    const std::int64_t call = integer_at(source, 0).value_or(-2);
    const std::int64_t index = integer_at(source, 1).value_or(-1);
    const bool is_input = call == -1 && index >= 0 && index < static_cast<std::int64_t>(graph.inputs.size());
    // Only earlier calls are in the list by now, so a graph that passes has no cycle.
    const bool is_call = call >= 0 && call < static_cast<std::int64_t>(graph.calls.size()) && index >= 0;
    if (!is_input && !is_call) {
      refuse_savepoint(
          fmt::format("an entry of \"{}\" of its graph names no input and no earlier call; use another "
                      "savepoint",
                      key));
    }
    sources.push_back({.call = is_input ? ModelGraphSource::kModelInput : static_cast<std::size_t>(call),
                       .index = static_cast<std::size_t>(index)});
  }
  return sources;
}

void read_calls(const Json& json, ModelGraph& graph) {
  for (const Json& call : list_member(json, "calls")) {
    const std::int64_t layer = integer_value(member(call, "layer")).value_or(-1);
    if (layer < 0 || layer >= static_cast<std::int64_t>(graph.layers.size())) {
      refuse_savepoint("a call of its graph names no layer; use another savepoint");
    }
    // A call may be tiny, so a small file could otherwise hold millions of them.
    if (graph.calls.size() == ModelGraph::kMaxCalls) {
      refuse_savepoint(
          fmt::format("its graph has more than {} calls of layers; use another savepoint", ModelGraph::kMaxCalls));
    }
    graph.calls.push_back({.layer = static_cast<std::size_t>(layer), .inputs = read_sources(call, "inputs", graph)});
  }
}

// A chain is a graph whose calls follow one another. Nothing after this function knows that its text was another one.
ModelGraph read_chain(const Json& json) {
  ModelGraph graph;
  // The text of a chain has no name for its input.
  graph.inputs.push_back({.name = "input", .shape = shape_member(json, "input_shape")});
  read_layers(json, graph);
  ModelGraphSource last;
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer) {
    graph.calls.push_back({.layer = layer, .inputs = {last}});
    last = {.call = layer, .index = 0};
  }
  graph.outputs = {last};
  return graph;
}

// `seen` drops a name that is there twice, so the comparison of counts refuses it.
std::vector<std::string> read_names(const Json& json, const char* key, std::size_t count) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const Json& name : list_member(json, key)) {
    if (name.is_string() && seen.insert(name.get<std::string>()).second) names.push_back(name.get<std::string>());
  }
  if (names.size() == count && list_member(json, key).size() == count) return names;
  refuse_savepoint(fmt::format("\"{}\" of its graph does not have a name for each output; use another savepoint", key));
}

ModelGraph read_calls_and_layers(const Json& json) {
  ModelGraph graph;
  for (const Json& input : list_member(json, "inputs")) {
    graph.inputs.push_back({.name = text_member(input, "name"),
                            .shape = shape_member(input, "shape"),
                            .dtype = text_member(input, "dtype")});
  }
  read_layers(json, graph);
  read_calls(json, graph);
  graph.outputs = read_sources(json, "outputs", graph);
  if (graph.inputs.empty() || graph.outputs.empty()) {
    refuse_savepoint("its graph has no input or no output; use another savepoint");
  }
  if (json.contains("output_names")) graph.output_names = read_names(json, "output_names", graph.outputs.size());
  return graph;
}

Json sources_json(const std::vector<ModelGraphSource>& sources) {
  Json list = Json::array();
  for (const ModelGraphSource& source : sources) {
    const bool is_input = source.call == ModelGraphSource::kModelInput;
    list.push_back(Json::array({is_input ? std::int64_t{-1} : static_cast<std::int64_t>(source.call), source.index}));
  }
  return list;
}

// "trainable" stands there only where it is false, as the SDK writes it.
Json layers_json(const ModelGraph& graph) {
  Json layers = Json::array();
  for (const ModelGraphLayer& layer : graph.layers) {
    layers.push_back({{"kind", layer.kind}, {"name", layer.name}, {"config", layer.config}});
    if (layer.is_frozen) layers.back()["trainable"] = false;
  }
  return layers;
}

// Whether the layer's activation comes after everything else that it computes. That of a recurrent layer is a part of
// each step, so no other layer can take its place.
bool ends_with_activation(const ModelGraphLayer& layer) {
  const LayerRow* row = row_of_kind(layer.kind, 0);
  if (row == nullptr || layer.kind == "Activation") return false;
  return std::ranges::any_of(row->options,
                             [](const LayerOption& option) { return option.form == OptionForm::activation; });
}

// The order of the calls that the outputs need: depth first, the first input of a call first. Without recursion, since
// a graph may be deeper than a stack.
std::vector<std::size_t> calls_in_order(const ModelGraph& graph) {
  struct Visit {
    std::size_t call;
    std::size_t next_input = 0;
  };
  std::vector<std::size_t> order;
  std::vector<bool> is_seen(graph.calls.size());
  std::vector<Visit> visits;
  const auto enter = [&](const ModelGraphSource& source) {
    if (source.call == ModelGraphSource::kModelInput || is_seen[source.call]) return;
    is_seen[source.call] = true;
    visits.push_back({.call = source.call});
  };
  for (const ModelGraphSource& output : graph.outputs) {
    enter(output);
    while (!visits.empty()) {
      // Not used after enter(), which may move the visits.
      Visit& visit = visits.back();
      const std::vector<ModelGraphSource>& inputs = graph.calls[visit.call].inputs;
      if (visit.next_input < inputs.size()) {
        enter(inputs[visit.next_input++]);
      } else {
        // After all its inputs, so each call comes after those that it needs.
        order.push_back(visit.call);
        visits.pop_back();
      }
    }
  }
  return order;
}

}  // namespace

std::optional<std::string> input_type_of_keras(std::string_view name) {
  for (const auto& [keras, holdfast] : kInputTypes) {
    if (keras == name) return std::string(holdfast);
  }
  return std::nullopt;
}

std::optional<std::string> keras_input_type(std::string_view name) {
  for (const auto& [keras, holdfast] : kInputTypes) {
    if (holdfast == name) return std::string(keras);
  }
  return std::nullopt;
}

std::string known_keras_input_types() {
  std::string words;
  for (const auto& [keras, holdfast] : kInputTypes) {
    words += fmt::format("{}{}", words.empty() ? "" : keras == kInputTypes.back().first ? " or " : ", ", keras);
  }
  return words;
}

void refuse_savepoint(const std::string& problem) {
  throw Error(ErrorCode::unsupported, fmt::format("the savepoint cannot become a Keras model: {}", problem));
}

bool ModelGraph::is_chain() const {
  // A layer that is called twice or never makes the two numbers differ.
  if (inputs.size() != 1 || outputs.size() != 1 || calls.size() != layers.size()) return false;
  // The text of a chain has no place for the type of its input, and for the name of its output.
  if (inputs.front().dtype != "f32" || !output_names.empty()) return false;
  ModelGraphSource last;
  for (std::size_t call = 0; call < calls.size(); ++call) {
    // The text of a chain has no place for the path of a layer in a nested model.
    const bool is_nested = layers[call].name.find('/') != std::string::npos;
    if (is_nested || calls[call].layer != call || calls[call].inputs != std::vector{last}) return false;
    last = {.call = call, .index = 0};
  }
  return outputs.front() == last;
}

ModelGraph read_model_graph(const Json& metadata) {
  const Json& json = member(metadata, "graph");
  const std::string format = text_member(json, "format");
  // Refused before anything else is read: members of another version may have another meaning.
  if ((format != kChainFormat && format != kModelFormat) || member(json, "version") != 1) {
    refuse_savepoint(
        "its graph is neither of format holdfast.sequential 1 nor of holdfast.model 1; give a savepoint of a "
        "Sequential or a Model");
  }
  return format == kChainFormat ? read_chain(json) : read_calls_and_layers(json);
}

Json model_graph_json(const ModelGraph& graph) {
  // A chain has a text of its own, which the SDK writes for it as well.
  if (graph.is_chain()) {
    return {{"format", kChainFormat},
            {"version", 1},
            {"input_shape", graph.inputs.front().shape},
            {"layers", layers_json(graph)}};
  }
  Json inputs = Json::array();
  for (const ModelGraphInput& input : graph.inputs) {
    inputs.push_back({{"name", input.name}, {"shape", input.shape}, {"dtype", input.dtype}});
  }
  Json calls = Json::array();
  for (const ModelGraphCall& call : graph.calls) {
    calls.push_back({{"layer", call.layer}, {"inputs", sources_json(call.inputs)}});
  }
  Json json = {{"format", kModelFormat},      {"version", 1},
               {"inputs", std::move(inputs)}, {"layers", layers_json(graph)},
               {"calls", std::move(calls)},   {"outputs", sources_json(graph.outputs)}};
  if (!graph.output_names.empty()) json["output_names"] = graph.output_names;
  return json;
}

ModelGraph with_activation_layers(const ModelGraph& graph, const std::function<bool(const std::string&)>& is_option) {
  ModelGraph result{.inputs = graph.inputs,
                    .layers = graph.layers,
                    .calls = {},
                    .outputs = graph.outputs,
                    .output_names = graph.output_names};
  std::set<std::string> names;
  for (const ModelGraphLayer& layer : graph.layers) names.insert(layer.name);
  constexpr std::size_t kNone = ModelGraphSource::kModelInput;
  // `is_option` says which activations the other program has as options of a layer. The others become layers.
  std::vector<std::size_t> activations(graph.layers.size(), kNone);  // by layer: the layer of its activation
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer) {
    Json& config = result.layers[layer].config;
    const std::string text = text_member(config, "activation");
    if (!ends_with_activation(graph.layers[layer]) || text.empty() || is_option(text)) continue;
    std::string name = graph.layers[layer].name + ".activation";
    // A layer of the model may have that name already.
    while (!names.insert(name).second) name += '_';
    activations[layer] = result.layers.size();
    config["activation"] = "linear";
    result.layers.push_back({.kind = "Activation", .name = std::move(name), .config = {{"activation", text}}});
  }
  // A later call that took the output of a layer must take that of its activation instead.
  std::vector<std::size_t> last(graph.calls.size());  // by call: the call with its output
  const auto moved = [&](ModelGraphSource source) {
    if (source.call != kNone) source.call = last[source.call];
    return source;
  };
  // Each call of such a layer is followed by one of its activation.
  for (std::size_t place = 0; place < graph.calls.size(); ++place) {
    ModelGraphCall call = graph.calls[place];
    std::transform(call.inputs.begin(), call.inputs.end(), call.inputs.begin(), moved);
    const std::size_t activation = activations[call.layer];
    result.calls.push_back(std::move(call));
    if (activation != kNone) {
      result.calls.push_back({.layer = activation, .inputs = {{.call = result.calls.size() - 1, .index = 0}}});
    }
    last[place] = result.calls.size() - 1;
  }
  std::transform(result.outputs.begin(), result.outputs.end(), result.outputs.begin(), moved);
  // Without a new layer nothing moves, so that a graph keeps its own order.
  return result.layers.size() == graph.layers.size() ? graph : in_holdfast_order(result);
}

ModelGraph in_holdfast_order(const ModelGraph& graph) {
  ModelGraph result{
      .inputs = graph.inputs, .layers = {}, .calls = {}, .outputs = graph.outputs, .output_names = graph.output_names};
  constexpr std::size_t kNone = ModelGraphSource::kModelInput;
  std::vector<std::size_t> layers(graph.layers.size(), kNone);
  std::vector<std::size_t> calls(graph.calls.size(), kNone);
  const auto renumber = [&](std::vector<ModelGraphSource>& sources) {
    for (ModelGraphSource& source : sources) {
      if (source.call != ModelGraphSource::kModelInput) source.call = calls[source.call];
    }
  };
  // Calls and layers get the numbers that the SDK gives them. The order of layers is that of the weights.
  for (const std::size_t place : calls_in_order(graph)) {
    ModelGraphCall call = graph.calls[place];
    std::size_t& layer = layers[call.layer];
    // A layer gets its number with its first call.
    if (layer == kNone) {
      layer = result.layers.size();
      result.layers.push_back(graph.layers[call.layer]);
    }
    call.layer = layer;
    // Every source stands before its call in this order, so it has its new number already.
    renumber(call.inputs);
    calls[place] = result.calls.size();
    result.calls.push_back(std::move(call));
  }
  renumber(result.outputs);
  return result;
}

}  // namespace holdfast::format
