// The JSON form of a model:
//   {"format": "holdfast.sequential", "version": 1, "input_shape": [28, 28, 1],
//    "layers": [{"kind": "Dense", "name": "dense", "config": {...}}, ...]}
// Layers write all names and options, defaults too: a later default must not change what a text means.

#include "holdfast/base/error.h"
#include "holdfast/nn/sequential.h"
#include "nn/config.h"
#include "nn/layer_registry.h"

namespace holdfast {

using OrderedJson = nlohmann::ordered_json;
using Json = nlohmann::json;

static constexpr std::string_view kFormat = "holdfast.sequential";
static constexpr std::int64_t kGraphVersion = 1;
// A layer takes a few hundred bytes. The limit bounds what parsing can cost.
static constexpr std::size_t kMaximumBytes = 4096 * Sequential::kMaximumLayers;

std::string Sequential::graph() const {
  OrderedJson layer_list = OrderedJson::array();
  for (const SequentialLayer& layer : layers()) {
    ConfigWriter config;
    layer.layer->write_config(config);
    layer_list.push_back({{"kind", layer.layer->kind()}, {"name", layer.name}, {"config", config.object()}});
  }
  const OrderedJson graph = {{"format", kFormat},
                             {"version", kGraphVersion},
                             {"input_shape", input_shape().extents()},
                             {"layers", layer_list}};
  return graph.dump();
}

static std::shared_ptr<const Layer> read_layer(const Json& json, std::size_t index) {
  const std::string place = "layer " + std::to_string(index);
  ConfigReader reader(json, place);
  const std::string kind = reader.text("kind");
  const std::string name = reader.text("name");
  ConfigReader config(reader.value("config"), place);
  auto layer = make_layer(kind, name, config);
  config.finish();
  reader.finish();
  return layer;
}

static Sequential read_model(const Json& json) {
  ConfigReader reader(json, "the head");
  if (reader.text("format") != kFormat || reader.integer("version") != kGraphVersion) {
    throw Error(ErrorCode::invalid_file, "the model graph is of another format or version than holdfast.sequential 1");
  }
  const Input input(Shape(reader.integers("input_shape")));
  const Json& list = reader.value("layers");
  reader.finish();
  if (!list.is_array() || list.size() > Sequential::kMaximumLayers) {
    throw Error(ErrorCode::invalid_file, "the model graph needs a list of at most 1024 layers");
  }
  std::vector<std::shared_ptr<const Layer>> layers;
  for (const Json& layer : list) layers.push_back(read_layer(layer, layers.size()));
  return Sequential(input, layers);
}

Sequential Sequential::from_graph(std::string_view json) {
  if (json.size() > kMaximumBytes) {
    throw Error(ErrorCode::invalid_file, "a model graph of " + std::to_string(json.size()) +
                                             " bytes is longer than any graph that Holdfast writes");
  }
  const Json parsed = Json::parse(json, nullptr, false);
  if (parsed.is_discarded()) throw Error(ErrorCode::invalid_file, "the model graph is not JSON");
  try {
    return read_model(parsed);
  } catch (const Error& error) {
    // An argument that would be invalid in an application makes the file invalid here.
    throw Error(ErrorCode::invalid_file, std::string("the model graph does not describe a model: ") + error.what());
  }
}

}  // namespace holdfast
