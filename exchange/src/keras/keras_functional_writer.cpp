// Keras orders the layers of a functional model by depth: how many calls there are at most between a layer and the
// outputs. Among layers of one depth, the first that a walk from the outputs meets comes first. A shared layer has the
// depth of its deepest call. This is that walk, over the graph that Keras will build from the configuration. See
// docs/decisions/exchange.md.

#include "keras/keras_functional_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "bytes/byte_source.h"
#include "keras_layers/keras_layer_table.h"
#include "keras_layers/keras_layer_writer.h"

namespace holdfast::format {
namespace {

constexpr std::size_t kUnmet = std::numeric_limits<std::size_t>::max();

// The calls of layers and the inputs of the model, as Keras's nodes: inputs first. Likewise its layers.
class KerasOrder {
 public:
  explicit KerasOrder(const ModelGraph& graph)
      : graph_(graph),
        met_(graph.inputs.size() + graph.layers.size(), kUnmet),
        depths_(met_.size(), 0),
        node_depths_(graph.inputs.size() + graph.calls.size(), 0) {
    walk();
    measure();
  }

  // Places of layers, where those below the number of inputs are the inputs.
  std::vector<std::size_t> layers() const {
    std::vector<std::size_t> order(met_.size());
    for (std::size_t layer = 0; layer < order.size(); ++layer) order[layer] = layer;
    // An input that no output needs has depth 0 and comes before all others of that depth.
    const auto rank = [&](std::size_t layer) { return met_[layer] == kUnmet ? 0 : met_[layer] + 1; };
    // The deepest layers come first. The number of the walk decides among layers of one depth.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return depths_[a] != depths_[b] ? depths_[a] > depths_[b] : rank(a) < rank(b);
    });
    return order;
  }

 private:
  std::size_t node_of(const ModelGraphSource& source) const {
    return source.call == ModelGraphSource::kModelInput ? source.index : graph_.inputs.size() + source.call;
  }

  std::size_t layer_of(std::size_t node) const {
    const std::size_t inputs = graph_.inputs.size();
    return node < inputs ? node : inputs + graph_.calls[node - inputs].layer;
  }

  const std::vector<ModelGraphSource>& inputs_of(std::size_t node) const {
    static const std::vector<ModelGraphSource> none;
    return node < graph_.inputs.size() ? none : graph_.calls[node - graph_.inputs.size()].inputs;
  }

  // Numbers the layers as a walk from the outputs meets them, and lists the nodes after those that they depend on.
  void walk() {
    struct Visit {
      std::size_t node;
      std::size_t next_input = 0;
    };
    std::vector<bool> is_seen(node_depths_.size());
    std::vector<Visit> visits;
    std::size_t met = 0;
    const auto enter = [&](std::size_t node) {
      if (is_seen[node]) return;
      is_seen[node] = true;
      // A shared layer keeps the number of its first call.
      if (met_[layer_of(node)] == kUnmet) met_[layer_of(node)] = met++;
      visits.push_back({.node = node});
    };
    for (const ModelGraphSource& output : graph_.outputs) {
      enter(node_of(output));
      while (!visits.empty()) {
        Visit& visit = visits.back();
        if (visit.next_input < inputs_of(visit.node).size()) {
          enter(node_of(inputs_of(visit.node)[visit.next_input++]));
        } else {
          nodes_.push_back(visit.node);
          visits.pop_back();
        }
      }
    }
  }

  void measure() {
    // From the outputs back: the depth of a node is only known when all calls that take its output are.
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      std::size_t& depth = depths_[layer_of(*node)];
      depth = std::max(depth, node_depths_[*node]);
      for (const ModelGraphSource& input : inputs_of(*node)) {
        std::size_t& above = node_depths_[node_of(input)];
        // With the depth of the layer and not of the call, as Keras does. They differ for shared layers.
        above = std::max(above, depth + 1);
      }
    }
  }

  const ModelGraph& graph_;
  std::vector<std::size_t> nodes_;
  std::vector<std::size_t> met_;     // by layer: when the walk met it
  std::vector<std::size_t> depths_;  // by layer
  std::vector<std::size_t> node_depths_;
};

// Keras walks from named outputs in the order of their names.
ModelGraph with_sorted_outputs(const ModelGraph& graph) {
  ModelGraph sorted = graph;
  std::map<std::string, ModelGraphSource> by_name;
  for (std::size_t output = 0; output < graph.output_names.size(); ++output) {
    by_name[graph.output_names[output]] = graph.outputs[output];
  }
  if (!by_name.empty()) sorted.outputs.clear();
  for (const auto& [name, source] : by_name) sorted.outputs.push_back(source);
  return sorted;
}

std::string name_for_keras(std::string name, std::set<std::string>& taken) {
  std::replace(name.begin(), name.end(), '/', '.');
  if (name.empty()) name = "layer";
  // "a/b" and "a.b" are two names here and would be one for Keras.
  while (!taken.insert(name).second) name += '_';
  return name;
}

class FunctionalWriter {
 public:
  explicit FunctionalWriter(const ModelGraph& graph)
      : graph_(graph),
        shapes_(shapes_of_calls(graph)),
        are_reversed_(reversed_calls(graph)),
        names_(keras_layer_names(graph)),
        calls_of_(graph.layers.size()) {
    // Inputs are layers for Keras, so they must not have a layer's name.
    std::set<std::string> taken(names_.begin(), names_.end());
    for (const ModelGraphInput& input : graph.inputs) {
      input_names_.push_back(name_for_keras(input.name.empty() ? "input_layer" : input.name, taken));
      const auto dtype = keras_input_type(input.dtype);
      if (!dtype) {
        refuse_savepoint(fmt::format("its input {} is of type {}, and only {} can be written for Keras",
                                     quoted_text(input.name), quoted_text(input.dtype), known_keras_input_types()));
      }
      input_types_.push_back(*dtype);
    }
    for (std::size_t call = 0; call < graph.calls.size(); ++call) {
      // Keras names an output by its layer and the number of the call.
      numbers_.push_back(calls_of_[graph.calls[call].layer].size());
      calls_of_[graph.calls[call].layer].push_back(call);
    }
  }

  Json write() const {
    check_weights();
    check_shapes();
    Json layers = Json::array();
    const ModelGraph sorted = with_sorted_outputs(graph_);
    for (const std::size_t place : KerasOrder(sorted).layers()) {
      const std::size_t inputs = graph_.inputs.size();
      layers.push_back(place < inputs ? input_entry(place) : layer_entry(place - inputs));
    }
    std::vector<ModelGraphSource> inputs;
    for (std::size_t input = 0; input < graph_.inputs.size(); ++input) inputs.push_back({.index = input});
    return keras_object("keras.src.models.functional", "Functional",
                        {{"name", "functional"},
                         {"trainable", true},
                         {"layers", std::move(layers)},
                         {"input_layers", histories(inputs)},
                         {"output_layers", graph_.output_names.empty() ? histories(graph_.outputs) : named_outputs()}});
  }

 private:
  static Json batch_shape(const SampleShape& shape) {
    Json batch = Json::array({nullptr});
    for (const std::int64_t extent : shape) batch.push_back(extent);
    return batch;
  }

  Json input_entry(std::size_t input) const {
    Json entry = keras_object("keras.layers", "InputLayer",
                              {{"batch_shape", batch_shape(graph_.inputs[input].shape)},
                               {"dtype", input_types_[input]},
                               {"name", input_names_[input]}});
    entry["name"] = input_names_[input];
    entry["inbound_nodes"] = Json::array();
    return entry;
  }

  // All calls of a layer are of one object, which has the shapes of the first.
  Json layer_entry(std::size_t layer) const {
    if (calls_of_[layer].empty()) {
      refuse_savepoint(
          fmt::format("no call uses its layer {}; use another savepoint", quoted_text(graph_.layers[layer].name)));
    }
    Json entry;
    Json nodes = Json::array();
    for (const std::size_t call : calls_of_[layer]) {
      const std::vector<MaybeShape> inputs = input_shapes(graph_, graph_.calls[call], shapes_);
      KerasObject object = keras_layer_object(graph_.layers[layer], names_[layer], inputs);
      nodes.push_back(node(graph_.calls[call], object));
      if (are_reversed_[call]) nodes.back()["kwargs"]["reverse"] = true;
      // The layer is written once, and its other calls only add nodes.
      if (entry.is_null()) entry = std::move(object.object);
    }
    entry["name"] = names_[layer];
    entry["inbound_nodes"] = std::move(nodes);
    return entry;
  }

  Json node(const ModelGraphCall& call, const KerasObject& object) const {
    std::size_t next = 0;
    const auto of_element = [&](const Json& element) -> Json {
      // A null stands for the next input, and one that is named for itself.
      if (element.is_null()) return tensor(call.inputs.at(next++));
      if (element.is_object() && element.contains("input")) return tensor(call.inputs.front());
      // False stands for no value; anything else for a number that is an argument itself.
      return element == false ? Json() : element;
    };
    const auto of_argument = [&](const Json& argument) {
      if (!argument.is_array()) return of_element(argument);
      Json list = Json::array();
      for (const Json& element : argument) list.push_back(of_element(element));
      return list;
    };
    Json args = Json::array();
    for (const Json& argument : object.arguments) args.push_back(of_argument(argument));
    // In the order of the inputs, which is that of the row and not that of the names.
    Json named = Json::object();
    const LayerRow* const row = row_of_kind(graph_.layers[call.layer].kind, 0);
    for (const CallValue& value : row == nullptr ? std::vector<CallValue>() : row->call_values) {
      const auto found = object.named_arguments.find(value.keras);
      if (found != object.named_arguments.end()) named[std::string(value.keras)] = of_argument(*found);
    }
    for (const auto& [key, value] : object.named_arguments.items()) {
      if (!named.contains(key)) named[key] = value;
    }
    return {{"args", std::move(args)}, {"kwargs", std::move(named)}};
  }

  // A layer of Keras has its weights to itself. A ReversibleEmbedding uses its own twice, and is a layer there too.
  void check_weights() const {
    for (const ModelGraphLayer& layer : graph_.layers) {
      if (layer.kind != "Operation" || text_member(layer.config, "operation") != "weight") continue;
      refuse_savepoint(
          fmt::format("its layer {} hands on a weight of another layer, which files of Keras cannot hold; tie an "
                      "embedding and its output with ReversibleEmbedding, or write safetensors",
                      quoted_text(layer.name)));
    }
  }

  // Names the first layer whose output has no shape, before those after it are blamed.
  void check_shapes() const {
    for (std::size_t call = 0; call < graph_.calls.size(); ++call) {
      if (shapes_[call].front()) continue;
      const ModelGraphLayer& layer = graph_.layers[graph_.calls[call].layer];
      // A kind that Keras does not have has a sentence of its own.
      keras_layer_object(layer, layer.name, input_shapes(graph_, graph_.calls[call], shapes_));
      refuse_savepoint(fmt::format("its layer {} has options that do not fit its input; use another savepoint",
                                   quoted_text(layer.name)));
    }
  }

  // A layer may have several outputs.
  MaybeShape shape_of_output(const ModelGraphSource& source) const {
    MaybeShape shape = input_shapes(graph_, {.layer = 0, .inputs = {source}}, shapes_).front();
    if (!shape) refuse_savepoint("a value in it has no shape that follows from its layers; use another savepoint");
    return shape;
  }

  // Keras takes the shape from the call, but wants one here.
  Json tensor(const ModelGraphSource& source) const {
    const bool is_input = source.call == ModelGraphSource::kModelInput;
    const SampleShape shape = is_input ? graph_.inputs[source.index].shape : *shape_of_output(source);
    const std::string dtype = is_input ? input_types_[source.index] : "float32";
    return {{"class_name", "__keras_tensor__"},
            {"config", {{"shape", batch_shape(shape)}, {"dtype", dtype}, {"keras_history", history(source)}}}};
  }

  Json history(const ModelGraphSource& source) const {
    if (source.call == ModelGraphSource::kModelInput) return Json::array({input_names_[source.index], 0, 0});
    return Json::array({names_[graph_.calls[source.call].layer], numbers_[source.call], source.index});
  }

  // A model with names for its outputs returns them by name.
  Json named_outputs() const {
    Json named = Json::object();
    for (std::size_t output = 0; output < graph_.outputs.size(); ++output) {
      named[graph_.output_names[output]] = history(graph_.outputs[output]);
    }
    return named;
  }

  // One value stands without a list, so that the model takes or returns it alone.
  Json histories(const std::vector<ModelGraphSource>& sources) const {
    Json list = Json::array();
    for (const ModelGraphSource& source : sources) list.push_back(history(source));
    return list.size() == 1 ? list[0] : list;
  }

  const ModelGraph& graph_;
  const std::vector<OutputShapes> shapes_;
  const std::vector<bool> are_reversed_;  // by call
  const std::vector<std::string> names_;
  std::vector<std::string> input_names_;
  std::vector<std::string> input_types_;            // Keras's names of them
  std::vector<std::vector<std::size_t>> calls_of_;  // by layer
  std::vector<std::size_t> numbers_;                // of a call among those of its layer
};

}  // namespace

std::vector<std::string> keras_layer_names(const ModelGraph& graph) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const ModelGraphLayer& layer : graph.layers) names.push_back(name_for_keras(layer.name, taken));
  return names;
}

Json keras_functional_config(const ModelGraph& graph) {
  return FunctionalWriter(graph).write();
}

}  // namespace holdfast::format
