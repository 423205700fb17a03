// The functional configuration of a graph: calls, names, and Keras's order of layers.

#include "keras/keras_functional_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "keras/keras_functional_reader.h"
#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

ModelGraph graph_of_text(const char* text) {
  return read_model_graph({{"graph", Json::parse(text)}});
}

std::vector<std::string> layer_names_in(const Json& config) {
  std::vector<std::string> names;
  for (const Json& layer : config["config"]["layers"]) names.push_back(layer["name"]);
  return names;
}

// shared(left), shared(shared(right) through two layers), their sum and an end, a side branch, and an unused input.
constexpr const char* kBranches = R"({"format": "holdfast.model", "version": 1,
    "inputs": [{"name": "left", "shape": [6], "dtype": "f32"}, {"name": "right", "shape": [6], "dtype": "f32"},
               {"name": "unused", "shape": [1], "dtype": "f32"}],
    "layers": [{"kind": "Dense", "name": "shared", "config": {"units": 6}},
               {"kind": "Dense", "name": "two", "config": {"units": 6}},
               {"kind": "Dense", "name": "one", "config": {"units": 6}},
               {"kind": "Add", "name": "sum", "config": {}},
               {"kind": "Dense", "name": "end", "config": {"units": 3}},
               {"kind": "Dense", "name": "side", "config": {"units": 2}}],
    "calls": [{"layer": 0, "inputs": [[-1, 1]]}, {"layer": 1, "inputs": [[0, 0]]}, {"layer": 2, "inputs": [[1, 0]]},
              {"layer": 0, "inputs": [[2, 0]]}, {"layer": 0, "inputs": [[-1, 0]]},
              {"layer": 3, "inputs": [[3, 0], [4, 0]]}, {"layer": 4, "inputs": [[5, 0]]},
              {"layer": 5, "inputs": [[4, 0]]}],
    "outputs": [[6, 0], [7, 0]]})";

TEST(KerasFunctionalWriter, OrdersLayersAsKerasDoes) {
  // As Keras 3.15 lists the layers of this model.
  EXPECT_THAT(layer_names_in(keras_functional_config(graph_of_text(kBranches))),
              ElementsAre("right", "shared", "two", "one", "left", "sum", "unused", "end", "side"));
}

// y = x kernel kernel^T
constexpr const char* kTied = R"({"format": "holdfast.model", "version": 1,
    "inputs": [{"name": "x", "shape": [6], "dtype": "f32"}],
    "layers": [{"kind": "Dense", "name": "code", "config": {"units": 6}},
               {"kind": "Operation", "name": "weight", "config": {"operation": "weight", "weight": "kernel"}},
               {"kind": "Operation", "name": "permute", "config": {"operation": "permute", "order": [1, 0]}},
               {"kind": "Operation", "name": "matmul", "config": {"operation": "matmul"}}],
    "calls": [{"layer": 0, "inputs": [[-1, 0]]}, {"layer": 1, "inputs": [[0, 0]]}, {"layer": 2, "inputs": [[1, 0]]},
              {"layer": 3, "inputs": [[0, 0], [2, 0]]}],
    "outputs": [[3, 0]]})";

TEST(KerasFunctionalWriter, SaysThatKerasHasNoTiedWeights) {
  EXPECT_THAT(error_of([] { keras_functional_config(graph_of_text(kTied)); }),
              HasSubstr("its layer \"weight\" hands on a weight of another layer"));
}

TEST(KerasFunctionalWriter, IsReadBackAsTheSameGraph) {
  const ModelGraph graph = graph_of_text(kBranches);

  const ModelGraph found = read_keras_functional(keras_functional_config(graph), "the configuration").graph;

  ASSERT_EQ(found.calls.size(), graph.calls.size());
  for (std::size_t i = 0; i < graph.calls.size(); ++i) {
    EXPECT_EQ(found.layers[found.calls[i].layer].name, graph.layers[graph.calls[i].layer].name);
    EXPECT_EQ(found.calls[i].inputs, graph.calls[i].inputs);
  }
  EXPECT_EQ(found.outputs, graph.outputs);
}

TEST(KerasFunctionalWriter, KeepsNamesOfOutputs) {
  Json text = Json::parse(kBranches);
  text["output_names"] = Json::array({"main", "aside"});
  const ModelGraph graph = read_model_graph({{"graph", text}});

  const Json config = keras_functional_config(graph);

  EXPECT_EQ(config["config"]["output_layers"], Json::parse(R"({"aside": ["side", 0, 0], "main": ["end", 0, 0]})"));
  // As Keras 3.15 lists the layers of this model: it walks from the outputs in the order of their names.
  EXPECT_THAT(layer_names_in(config),
              ElementsAre("left", "right", "shared", "two", "one", "sum", "unused", "side", "end"));
  const ModelGraph found = read_keras_functional(config, "the configuration").graph;
  EXPECT_THAT(found.output_names, ElementsAre("aside", "main"));
  EXPECT_EQ(model_graph_json(found)["output_names"], Json::array({"aside", "main"}));
}

TEST(KerasFunctionalWriter, RefusesNamesThatAreNotOneForEachOutput) {
  for (const char* names : {R"(["a"])", R"(["a", "a"])", R"(["a", 3])", R"(["a", "b", "c"])"}) {
    Json text = Json::parse(kBranches);
    text["output_names"] = Json::parse(names);
    EXPECT_THAT(error_of([&] { read_model_graph({{"graph", text}}); }), HasSubstr("a name for each output")) << names;
  }
}

TEST(KerasFunctionalWriter, CallsAReversibleEmbeddingInBothDirections) {
  const ModelGraph graph = graph_of_text(R"({"format": "holdfast.model", "version": 1,
      "inputs": [{"name": "ids", "shape": [3], "dtype": "i32"}],
      "layers": [{"kind": "ReversibleEmbedding", "name": "words", "config": {"vocabulary": 9, "width": 2,
                  "tie_weights": true, "logit_soft_cap": [null], "initializer": "ones"}}],
      "calls": [{"layer": 0, "inputs": [[-1, 0]]}, {"layer": 0, "inputs": [[0, 0]]}], "outputs": [[1, 0]]})");

  const Json config = keras_functional_config(graph);

  const Json& nodes = config["config"]["layers"][1]["inbound_nodes"];
  EXPECT_EQ(nodes[0]["kwargs"], Json::object());
  EXPECT_EQ(nodes[1]["kwargs"], Json::parse(R"({"reverse": true})"));
  EXPECT_EQ(nodes[1]["args"][0]["config"]["shape"], Json({nullptr, 3, 2}));
  const ModelGraph found = read_keras_functional(config, "the configuration").graph;
  EXPECT_EQ(model_graph_json(found)["calls"], model_graph_json(graph)["calls"]);
}

TEST(KerasFunctionalWriter, GivesNamesWithoutSlashesAndWithoutTwins) {
  ModelGraph graph;
  for (const char* name : {"encoder/dense", "encoder.dense", "", "dense"})
    graph.layers.push_back({.kind = "Dense", .name = name});

  EXPECT_THAT(keras_layer_names(graph), ElementsAre("encoder.dense", "encoder.dense_", "layer", "dense"));
}

TEST(KerasFunctionalWriter, WritesOneInputAndOutputWithoutAList) {
  const ModelGraph graph = graph_of_text(R"({"format": "holdfast.model", "version": 1,
      "inputs": [{"name": "x", "shape": [2, 3], "dtype": "f32"}],
      "layers": [{"kind": "Operation", "name": "multiply",
                  "config": {"operation": "multiply", "constants": [null, 2]}}],
      "calls": [{"layer": 0, "inputs": [[-1, 0]]}], "outputs": [[0, 0]]})");

  const Json config = keras_functional_config(graph)["config"];

  EXPECT_EQ(config["input_layers"], Json({"x", 0, 0}));
  EXPECT_EQ(config["output_layers"], Json({"multiply", 0, 0}));
  const Json tensor = {{"class_name", "__keras_tensor__"},
                       {"config", {{"shape", {nullptr, 2, 3}}, {"dtype", "float32"}, {"keras_history", {"x", 0, 0}}}}};
  EXPECT_EQ(config["layers"][1]["inbound_nodes"][0]["args"], Json::array({tensor, 2}));
}

TEST(KerasFunctionalWriter, RefusesWhatItCannotWrite) {
  ModelGraph integers = graph_of_text(kBranches);
  integers.inputs[0].dtype = "f16";
  ModelGraph broken = graph_of_text(kBranches);
  broken.layers[1].config["units"] = 0;
  ModelGraph uncalled = graph_of_text(kBranches);
  uncalled.layers.push_back({.kind = "Dense", .name = "alone"});

  EXPECT_THAT(error_of([&] { keras_functional_config(integers); }), HasSubstr("its input \"left\" is of type \"f16\""));
  EXPECT_THAT(error_of([&] { keras_functional_config(broken); }),
              HasSubstr("its layer \"two\" has options that do not"));
  EXPECT_THAT(error_of([&] { keras_functional_config(uncalled); }), HasSubstr("no call uses its layer \"alone\""));
}

}  // namespace
}  // namespace holdfast::format
