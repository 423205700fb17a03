// Both texts of a model's graph, read and written, and what no such text may say.

#include "keras_layers/model_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

constexpr const char* kChain = R"({"format": "holdfast.sequential", "version": 1, "input_shape": [4],
    "layers": [{"kind": "Dense", "name": "dense", "config": {"units": 2}},
               {"kind": "Dropout", "name": "dropout", "config": {"rate": 0.5}}]})";
constexpr const char* kModel = R"({"format": "holdfast.model", "version": 1,
    "inputs": [{"name": "a", "shape": [4], "dtype": "f32"}, {"name": "b", "shape": [4], "dtype": "f32"}],
    "layers": [{"kind": "Dense", "name": "encoder/dense", "config": {"units": 2}},
               {"kind": "Add", "name": "add", "config": {}}],
    "calls": [{"layer": 0, "inputs": [[-1, 0]]}, {"layer": 0, "inputs": [[-1, 1]]},
              {"layer": 1, "inputs": [[0, 0], [1, 0]]}],
    "outputs": [[2, 0], [0, 0]]})";

ModelGraph graph_from(const Json& graph) {
  return read_model_graph({{"graph", graph}});
}

TEST(ModelGraph, WritesBothTextsAsItReadThem) {
  for (const char* text : {kChain, kModel}) {
    const Json json = Json::parse(text);

    EXPECT_EQ(model_graph_json(graph_from(json)), json);
  }
}

TEST(ModelGraph, IsAChainOnlyWithoutBranchesAndPaths) {
  EXPECT_TRUE(graph_from(Json::parse(kChain)).is_chain());
  EXPECT_FALSE(graph_from(Json::parse(kModel)).is_chain());
  ModelGraph nested = graph_from(Json::parse(kChain));
  nested.layers[0].name = "encoder/dense";
  EXPECT_FALSE(nested.is_chain());
  ModelGraph two_outputs = graph_from(Json::parse(kChain));
  two_outputs.outputs.push_back({.call = 0, .index = 0});
  EXPECT_FALSE(two_outputs.is_chain());
}

TEST(ModelGraph, NumbersDepthFirstAndLeavesOutWhatNoOutputNeeds) {
  ModelGraph graph;
  graph.inputs.push_back({.name = "x", .shape = {2}});
  for (const char* name : {"unused", "second", "first", "sum"}) graph.layers.push_back({.kind = "Dense", .name = name});
  graph.calls = {{.layer = 0, .inputs = {{}}},
                 {.layer = 1, .inputs = {{}}},
                 {.layer = 2, .inputs = {{}}},
                 {.layer = 3, .inputs = {{.call = 2}, {.call = 1}}}};
  graph.outputs = {{.call = 3}, {.call = 1}};

  const ModelGraph ordered = in_holdfast_order(graph);

  std::vector<std::string> names;
  for (const ModelGraphLayer& layer : ordered.layers) names.push_back(layer.name);
  EXPECT_THAT(names, ElementsAre("first", "second", "sum"));
  EXPECT_EQ(ordered.calls[2].inputs, (std::vector<ModelGraphSource>{{.call = 0}, {.call = 1}}));
  EXPECT_EQ(ordered.outputs, (std::vector<ModelGraphSource>{{.call = 2}, {.call = 1}}));
}

TEST(ModelGraph, OrdersAGraphThatIsDeeperThanAStack) {
  ModelGraph graph;
  graph.inputs.push_back({.name = "x", .shape = {2}});
  constexpr std::size_t kCalls = 200'000;
  graph.layers.push_back({.kind = "Dense", .name = "shared"});
  ModelGraphSource last;
  for (std::size_t call = 0; call < kCalls; ++call) {
    graph.calls.push_back({.layer = 0, .inputs = {last}});
    last = {.call = call};
  }
  graph.outputs = {last};

  EXPECT_EQ(in_holdfast_order(graph).calls.size(), kCalls);
}

TEST(ModelGraph, RefusesSourcesThatDoNotComeBefore) {
  const auto with = [](const char* pointer, const Json& value) {
    Json json = Json::parse(kModel);
    json[Json::json_pointer(pointer)] = value;
    return error_of([&] { graph_from(json); });
  };

  for (const Json& source : std::vector<Json>{{2, 0},
                                              {3, 0},
                                              {-1, 2},
                                              {-2, 0},
                                              {0, -1},
                                              {0},
                                              "x",
                                              {0, 0.5},
                                              {1e300, 0},
                                              {18446744073709551615U, 0},
                                              Json()}) {
    EXPECT_THAT(with("/calls/2/inputs/0", source), HasSubstr("names no input and no earlier call")) << source;
  }
  EXPECT_THAT(with("/outputs/0", {3, 0}), HasSubstr("an entry of \"outputs\""));
  for (const Json& layer : std::vector<Json>{2, -1, "x", 0.5, Json()}) {
    EXPECT_THAT(with("/calls/0/layer", layer), HasSubstr("names no layer")) << layer;
  }
  EXPECT_THAT(with("/outputs", Json::array()), HasSubstr("no output"));
  EXPECT_THAT(with("/inputs", 3), HasSubstr("no list of inputs"));
}

TEST(ModelGraph, RefusesMoreAxesAndCallsThanModelsHave) {
  Json deep = Json::parse(kChain);
  deep["input_shape"] = std::vector<int>(32, 1);
  EXPECT_EQ(graph_from(deep).inputs[0].shape.size(), 32U);
  deep["input_shape"] = std::vector<int>(33, 1);
  EXPECT_THAT(error_of([&] { graph_from(deep); }), HasSubstr("more than 32 axes"));

  Json model = Json::parse(kModel);
  while (model["calls"].size() < ModelGraph::kMaxCalls) model["calls"].push_back(model["calls"][0]);
  EXPECT_EQ(graph_from(model).calls.size(), ModelGraph::kMaxCalls);
  model["calls"].push_back(model["calls"][0]);
  EXPECT_THAT(error_of([&] { graph_from(model); }), HasSubstr("more than 1024 calls of layers"));
}

// An LSTM with such an activation became one with "linear" and a layer after it, which computes something else.
TEST(ModelGraph, MakesNoLayerOfAnActivationWithinTheStepsOfALayer) {
  const auto layers_with = [](const char* kind) {
    Json json = Json::parse(kChain);
    json["layers"][0] = {{"kind", kind}, {"name", "a"}, {"config", {{"units", 2}, {"activation", "celu(2)"}}}};
    return with_activation_layers(graph_from(json), [](const std::string&) { return false; }).layers;
  };

  EXPECT_EQ(layers_with("Dense").size(), 3U);
  for (const char* kind : {"LSTM", "GRU", "SimpleRNN", "Bidirectional"}) {
    EXPECT_EQ(layers_with(kind).size(), 2U) << kind;
    EXPECT_EQ(layers_with(kind)[0].config["activation"], "celu(2)") << kind;
  }
}

TEST(ModelGraph, RefusesMoreLayersThanModelsHave) {
  for (const char* text : {kChain, kModel}) {
    Json json = Json::parse(text);
    while (json["layers"].size() < ModelGraph::kMaxCalls) json["layers"].push_back(json["layers"][0]);
    EXPECT_EQ(graph_from(json).layers.size(), ModelGraph::kMaxCalls);
    json["layers"].push_back(json["layers"][0]);
    EXPECT_THAT(error_of([&] { graph_from(json); }), HasSubstr("more than 1024 layers"));
  }
}

TEST(ModelGraph, RefusesOtherFormatsAndImpossibleShapes) {
  Json other = Json::parse(kModel);
  other["format"] = "mine";
  Json later = Json::parse(kChain);
  later["version"] = 2;
  EXPECT_THAT(error_of([&] { graph_from(other); }), HasSubstr("unsupported: "));
  EXPECT_THAT(error_of([&] { graph_from(later); }), HasSubstr("unsupported: "));
  EXPECT_THAT(error_of([&] { graph_from(3); }), HasSubstr("unsupported: "));
  for (const Json& extent : std::vector<Json>{0, -1, 1.5, "4", std::int64_t{1} << 41, 18446744073709551615U}) {
    Json json = Json::parse(kChain);
    json["input_shape"] = {2, extent};
    EXPECT_THAT(error_of([&] { graph_from(json); }), HasSubstr("impossible extent")) << extent;
  }
}

}  // namespace
}  // namespace holdfast::format
