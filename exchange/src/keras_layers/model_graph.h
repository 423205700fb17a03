#pragma once

// The graph of a model in a Holdfast file, as the exchange with Keras needs it: docs/format.md, "The graph of a model".
// Both formats, holdfast.sequential and holdfast.model, are read into the same form.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "keras_files/keras_json.h"

namespace holdfast::format {

// The extents of one sample.
using SampleShape = std::vector<std::int64_t>;

// An output of an earlier call, or an input of the model.
struct ModelGraphSource {
  static constexpr std::size_t kModelInput = std::numeric_limits<std::size_t>::max();
  std::size_t call = kModelInput;
  std::size_t index = 0;

  bool operator==(const ModelGraphSource&) const = default;
};

struct ModelGraphInput {
  std::string name;
  SampleShape shape;
  std::string dtype = "f32";
};

struct ModelGraphLayer {
  std::string kind;
  std::string name;  // "encoder/dense" in a nested model
  Json config = Json::object();
  bool is_frozen = false;  // "trainable" is false, on both sides
};

struct ModelGraphCall {
  std::size_t layer;
  std::vector<ModelGraphSource> inputs;
};

struct ModelGraph {
  static constexpr std::size_t kMaxCalls = 1024;  // Holdfast's models have no more calls, and no more layers
  static constexpr std::size_t kMaxArrays = 256;  // nor more inputs, outputs, or inputs of a call

  std::vector<ModelGraphInput> inputs;
  std::vector<ModelGraphLayer> layers;
  std::vector<ModelGraphCall> calls;  // each after those that it depends on
  std::vector<ModelGraphSource> outputs;
  std::vector<std::string> output_names = {};  // one for each, or none where the outputs are called like their layers
  // Whether the layers follow one another, so that the text is holdfast.sequential.
  bool is_chain() const;
};

// The type of an input by its name in Keras: "i32" for "int32". Missing for one that no model of Holdfast has.
std::optional<std::string> input_type_of_keras(std::string_view name);
// The name in Keras of such a type. Missing for one that Keras does not have.
std::optional<std::string> keras_input_type(std::string_view name);
// Keras's names of these types, as words of a sentence.
std::string known_keras_input_types();

// Reads the member "graph" of a savepoint's metadata. Sources are checked, options of layers are not. Throws
// Error{unsupported} for an application's own model, and for a text that is not such a graph.
ModelGraph read_model_graph(const Json& metadata);
// The reverse: the text that Holdfast itself writes for the model, apart from the order of members.
Json model_graph_json(const ModelGraph& graph);

// Numbers calls and layers as Holdfast does, depth first from the outputs, and leaves out what no output needs.
ModelGraph in_holdfast_order(const ModelGraph& graph);

// Makes a layer of each option `activation` that `is_option` does not accept: "dense.activation" after "dense".
// Recurrent layers keep theirs, which works within each step.
ModelGraph with_activation_layers(const ModelGraph& graph, const std::function<bool(const std::string&)>& is_option);

// Throws Error{unsupported} with the sentence "the savepoint cannot become a Keras model: PROBLEM".
[[noreturn]] void refuse_savepoint(const std::string& problem);

}  // namespace holdfast::format
