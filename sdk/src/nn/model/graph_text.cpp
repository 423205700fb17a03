// The JSON form of a model. A chain is written as
//   {"format": "holdfast.sequential", "version": 1, "input_shape": [28, 28, 1],
//    "layers": [{"kind": "Dense", "name": "dense", "config": {...}}, ...]}
// and every other model as
//   {"format": "holdfast.model", "version": 1,
//    "inputs": [{"name": "ids", "shape": [1024], "dtype": "f32"}, ...],
//    "layers": [{"kind": "Dense", "name": "dense", "config": {...}}, ...],
//    "calls": [{"layer": 0, "inputs": [[-1, 0]]}, {"layer": 1, "inputs": [[0, 0], [-1, 1]], "segment": 1}, ...],
//    "outputs": [[1, 0]], "output_names": ["score"]}
// where [call, output] is an output of an earlier call, and [-1, input] an input of the model. So there can be no
// cycle. Outputs without given names have no "output_names". A frozen layer has "trainable": false after its config.
// Calls of one segment are recomputed together, and most calls have none: train/state/train_state.cpp compares texts
// without them. Layers write all names and options, defaults
// too: a later default must not change what a text means. docs/format.md

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "holdfast/nn/input.h"
#include "nn/graph/config.h"
#include "nn/graph/layer_names.h"
#include "nn/layers/layer_registry.h"
#include "nn/model/describe.h"

namespace holdfast {

using OrderedJson = nlohmann::ordered_json;
namespace {

using Json = nlohmann::json;

}  // namespace

static constexpr std::string_view kChainFormat = "holdfast.sequential";
static constexpr std::string_view kModelFormat = "holdfast.model";
// A reader refuses other versions: it would misunderstand a text whose meaning has changed.
static constexpr std::int64_t kGraphVersion = 1;
// A layer takes a few hundred bytes. The limit bounds what parsing can cost.
static constexpr std::size_t kMaximumBytes = 4096 * Model::kMaximumLayers;
// A model of a text has at most so many inputs and so many outputs, and each call so many inputs.
static constexpr std::size_t kMaximumArrays = 256;

static OrderedJson layers_as_json(std::span<const ModelLayer> layers) {
  OrderedJson list = OrderedJson::array();
  // Members keep this order, so that equal models have equal texts, byte by byte.
  for (const ModelLayer& layer : layers) {
    JsonConfigWriter config;
    try {
      layer.layer->write_config(config);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("layer \"{}\" ({}) cannot be written: {}", layer.name, layer.layer->kind(),
                                            error.what()));
    }
    OrderedJson json = {{"kind", layer.layer->kind()}, {"name", layer.name}, {"config", config.object()}};
    // Keras's word. Texts of models without frozen layers have the bytes that they had before there were any.
    if (layer.is_frozen) json["trainable"] = false;
    list.push_back(std::move(json));
  }
  return list;
}

static OrderedJson sources_as_json(const std::vector<CallInput>& sources) {
  OrderedJson list = OrderedJson::array();
  for (const CallInput& source : sources) {
    // Calls are numbered from 0, so -1 is free for the inputs of the model.
    const bool is_input = source.call == CallInput::kModelInput;
    list.push_back({is_input ? std::int64_t{-1} : static_cast<std::int64_t>(source.call), source.index});
  }
  return list;
}

static OrderedJson chain_as_json(const ModelDescription& model) {
  return {{"format", kChainFormat},
          {"version", kGraphVersion},
          {"input_shape", model.inputs.front().spec.shape.extents()},
          {"layers", layers_as_json(model.layers)}};
}

static OrderedJson model_as_json(const ModelDescription& model) {
  OrderedJson inputs = OrderedJson::array();
  for (const ModelArray& input : model.inputs) {
    inputs.push_back({{"name", input.name}, {"shape", input.spec.shape.extents()}, {"dtype", name(input.spec.dtype)}});
  }
  OrderedJson calls = OrderedJson::array();
  for (const ModelCall& call : model.calls) {
    OrderedJson json = {{"layer", call.layer}, {"inputs", sources_as_json(call.inputs)}};
    if (call.segment != 0) json["segment"] = call.segment;
    calls.push_back(std::move(json));
  }
  OrderedJson json = {{"format", kModelFormat}, {"version", kGraphVersion},
                      {"inputs", inputs},       {"layers", layers_as_json(model.layers)},
                      {"calls", calls},         {"outputs", sources_as_json(model.output_sources)}};
  // Texts of models whose outputs were given no names have the bytes that they had before there were any.
  if (!model.output_names.empty()) json["output_names"] = model.output_names;
  return json;
}

std::string Model::graph() const {
  // The text of a chain has no type of the input, no names of outputs and no segments. A chain has the same text
  // whichever way it was described, so that equal chains have equal files.
  const auto is_recomputed = [](const ModelCall& call) { return call.segment != 0; };
  const bool has_segments = std::any_of(description_->calls.begin(), description_->calls.end(), is_recomputed);
  const bool is_plain =
      is_chain() && !has_segments && inputs().front().spec.dtype == DType::f32 && description_->output_names.empty();
  return (is_plain ? chain_as_json(*description_) : model_as_json(*description_)).dump();
}

namespace {

// Reads the parts that both formats and their lists have. Each function throws Error{invalid_file}.
const Json& list_of(JsonConfigReader& reader, std::string_view key, std::size_t most) {
  // A text from outside may list very many entries, so they are counted before anything is built of them.
  const Json& list = reader.value(key);
  if (!list.is_array() || list.size() > most) {
    throw Error(ErrorCode::invalid_file, fmt::format("the model graph needs \"{}\", a list of at most {}", key, most));
  }
  return list;
}

struct NamedLayer {
  std::string path;  // the layer's name with those of the models around it
  std::shared_ptr<const Layer> layer;
  bool is_frozen = false;
};

NamedLayer read_layer(const Json& json, std::size_t index) {
  const std::string place = fmt::format("layer {}", index);
  JsonConfigReader reader(json, place);
  const std::string kind = reader.text("kind");
  // A layer knows the last part of its path alone. Without a slash, rfind() gives the largest number, and one more is
  // 0.
  const std::string path = reader.text("name");
  JsonConfigReader config(reader.value("config"), place);
  auto layer = make_layer(kind, path.substr(path.rfind('/') + 1), config);
  // Members that were not read are an error: their meaning would be lost without a word.
  config.finish();
  const bool is_frozen = reader.has("trainable") && !reader.boolean("trainable");
  reader.finish();
  return {path, std::move(layer), is_frozen};
}

// The JSON library reads integers up to 2^64, and its get() would make -1 of the largest one.
bool is_integer(const Json& json) {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return json.is_number_integer() && !(json.is_number_unsigned() && json.get<std::uint64_t>() > kLargest);
}

std::vector<CallInput> read_sources(JsonConfigReader& reader, std::string_view key, const ModelDescription& model) {
  std::vector<CallInput> sources;
  for (const Json& source : list_of(reader, key, kMaximumArrays)) {
    const bool is_pair = source.is_array() && source.size() == 2 && is_integer(source[0]) && is_integer(source[1]);
    // What is not a pair gets numbers that name nothing, so the checks below refuse it.
    const std::int64_t call = is_pair ? source[0].get<std::int64_t>() : -2;
    const std::int64_t index = is_pair ? source[1].get<std::int64_t>() : -1;
    const bool is_input = call == -1 && index >= 0 && index < static_cast<std::int64_t>(model.inputs.size());
    // How many outputs a call has is known once it is lowered. Lowering checks the index then.
    const bool is_call = call >= 0 && call < static_cast<std::int64_t>(model.calls.size()) && index >= 0;
    if (!is_input && !is_call) {
      throw Error(ErrorCode::invalid_file,
                  fmt::format("an entry of \"{}\" of the model graph names no input and no earlier call", key));
    }
    const auto place = static_cast<std::size_t>(call);
    sources.push_back({.call = is_input ? CallInput::kModelInput : place, .index = static_cast<std::size_t>(index)});
  }
  return sources;
}

ModelDescription read_chain(JsonConfigReader& reader) {
  // Input refuses extents that no input can have.
  const Input input(Shape(reader.integers("input_shape")));
  const Json& list = list_of(reader, "layers", Model::kMaximumLayers);
  reader.finish();
  std::vector<std::shared_ptr<const Layer>> layers;
  std::vector<bool> are_frozen;
  for (const Json& json : list) {
    NamedLayer named = read_layer(json, layers.size());
    // A chain has no nested models, so its names have no slashes.
    check_layer_name(named.path);
    layers.push_back(std::move(named.layer));
    are_frozen.push_back(named.is_frozen);
  }
  ModelDescription model = describe_chain(input, layers);
  for (std::size_t layer = 0; layer < layers.size(); ++layer) model.layers[layer].is_frozen = are_frozen[layer];
  return model;
}

void read_inputs(JsonConfigReader& reader, ModelDescription& model) {
  for (const Json& json : list_of(reader, "inputs", kMaximumArrays)) {
    JsonConfigReader input(json, fmt::format("input {}", model.inputs.size()));
    const std::string name = input.text("name");
    const DType dtype = dtype_from_name(input.text("dtype"));
    const Shape shape = Input(Shape(input.integers("shape")), {.dtype = dtype}).shape();
    input.finish();
    // Data sets and predictions find an input by its name.
    for (const ModelArray& other : model.inputs) {
      if (other.name == name) throw Error(ErrorCode::invalid_file, "two inputs of the model graph have one name");
    }
    model.inputs.push_back({.name = name, .spec = {.shape = shape, .dtype = dtype}});
  }
}

void read_calls(JsonConfigReader& reader, ModelDescription& model) {
  // Layers are numbered by their first calls, as describe() does. A text with another order would have a second meaning
  // for the same model.
  std::size_t layers_called = 0;
  for (const Json& json : list_of(reader, "calls", Model::kMaximumLayers)) {
    JsonConfigReader call(json, fmt::format("call {}", model.calls.size()));
    const std::int64_t layer = call.integer("layer");
    if (layer < 0 || layer > static_cast<std::int64_t>(layers_called) ||
        layer >= static_cast<std::int64_t>(model.layers.size())) {
      throw Error(ErrorCode::invalid_file, "a call of the model graph names no layer, or one out of order");
    }
    layers_called = std::max(layers_called, static_cast<std::size_t>(layer) + 1);
    // The call is not in the list yet, so it can name earlier calls only, and there is never a cycle.
    std::vector<CallInput> inputs = read_sources(call, "inputs", model);
    // Recomputation counts up to the largest number of a segment, so a text must not choose a huge one.
    const std::int64_t segment = json.contains("segment") ? call.integer("segment") : 0;
    if (json.contains("segment") && (segment < 1 || segment > static_cast<std::int64_t>(Model::kMaximumLayers))) {
      throw Error(ErrorCode::invalid_file,
                  fmt::format("\"segment\" of a call of the model graph is {}, and not 1 to {}", segment,
                              Model::kMaximumLayers));
    }
    call.finish();
    model.calls.push_back({.layer = static_cast<std::size_t>(layer),
                           .inputs = std::move(inputs),
                           .segment = static_cast<std::size_t>(segment)});
  }
  // A layer without a call would have neither shapes nor weights.
  if (layers_called != model.layers.size()) {
    throw Error(ErrorCode::invalid_file, "the model graph has a layer that no call uses");
  }
}

std::vector<std::string> read_output_names(JsonConfigReader& reader, std::size_t outputs) {
  const Json& list = list_of(reader, "output_names", kMaximumArrays);
  std::vector<std::string> names;
  for (const Json& json : list) {
    if (json.is_string()) names.push_back(json.get<std::string>());
  }
  if (names.size() == outputs && list.size() == outputs) return names;
  throw Error(ErrorCode::invalid_file, "\"output_names\" of the model graph does not have a name for each output");
}

ModelDescription read_graph_of_calls(JsonConfigReader& reader) {
  ModelDescription model;
  read_inputs(reader, model);
  for (const Json& json : list_of(reader, "layers", Model::kMaximumLayers)) {
    NamedLayer named = read_layer(json, model.layers.size());
    check_layer_path(named.path);
    // Weights are found by the names of layers, so two layers must not share one. All pairs of 1024 layers are compared
    // quickly.
    for (const ModelLayer& other : model.layers) {
      if (other.name == named.path) throw Error(ErrorCode::invalid_file, "two layers of the model graph have one name");
    }
    model.layers.push_back({.name = named.path,
                            .layer = std::move(named.layer),
                            .input_shape = {},
                            .output_shape = {},
                            .is_frozen = named.is_frozen});
    // Files hold no identities: calls of the same layer name it by its number.
    model.identities.push_back(std::make_shared<const int>(0));
  }
  read_calls(reader, model);
  // An output may be that of any call, so outputs are read when all calls are there.
  model.output_sources = read_sources(reader, "outputs", model);
  if (reader.has("output_names")) name_outputs(model, read_output_names(reader, model.output_sources.size()));
  reader.finish();
  if (model.inputs.empty() || model.output_sources.empty()) {
    throw Error(ErrorCode::invalid_file, "the model graph has no input or no output");
  }
  return model;
}

ModelDescription read_model(const Json& json) {
  JsonConfigReader reader(json, "the head");
  const std::string format = reader.text("format");
  const bool is_known = format == kChainFormat || format == kModelFormat;
  if (!is_known || reader.integer("version") != kGraphVersion) {
    throw Error(ErrorCode::invalid_file,
                "the model graph is of another format or version than holdfast.sequential 1 and holdfast.model 1");
  }
  return format == kChainFormat ? read_chain(reader) : read_graph_of_calls(reader);
}

}  // namespace

Model Model::from_graph(std::string_view json) {
  if (json.size() > kMaximumBytes) {
    throw Error(ErrorCode::invalid_file,
                fmt::format("a model graph of {} bytes is longer than any graph that Holdfast writes", json.size()));
  }
  if (is_deep_json(json)) throw Error(ErrorCode::invalid_file, "the model graph nests its lists too deeply");
  // The parser reports an error by its result here, so that the sentence is ours.
  const Json parsed = Json::parse(json, nullptr, false);
  if (parsed.is_discarded()) throw Error(ErrorCode::invalid_file, "the model graph is not JSON");
  try {
    return Model(complete(read_model(parsed)));
  } catch (const Error& error) {
    // An argument that would be invalid in an application makes the file invalid here.
    throw Error(ErrorCode::invalid_file, std::string("the model graph does not describe a model: ") + error.what());
  }
}

}  // namespace holdfast
