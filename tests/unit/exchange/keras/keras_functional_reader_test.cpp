// Functional configurations of both formats, and configurations that no Keras writes: none may cost more than a
// sentence.

#include "keras/keras_functional_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "keras_layers/model_graph_shapes.h"
#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// An argument as Keras 3 writes it.
Json output_of(const std::string& layer, int node = 0, int output = 0) {
  return {{"class_name", "__keras_tensor__"}, {"config", {{"keras_history", {layer, node, output}}}}};
}

// Lists are vectors: compilers do not agree about a Json in braces, which is itself or a list of it.
Json call_with(std::vector<Json> arguments) {
  return {{"args", std::move(arguments)}, {"kwargs", Json::object()}};
}

Json layer_entry(const std::string& class_name, const std::string& name, std::vector<Json> calls,
                 Json config = Json::object()) {
  config.update({{"name", name}, {"trainable", true}});
  return {{"module", "keras.layers"},
          {"class_name", class_name},
          {"config", std::move(config)},
          {"name", name},
          {"inbound_nodes", std::move(calls)}};
}

Json dense_entry(const std::string& name, std::vector<Json> calls) {
  return layer_entry("Dense", name, std::move(calls), {{"units", 2}});
}

Json input_entry(const std::string& name = "x") {
  return layer_entry("InputLayer", name, {}, {{"batch_shape", {nullptr, 2}}, {"dtype", "float32"}});
}

Json functional(std::vector<Json> layers, Json inputs, Json outputs) {
  return {{"class_name", "Functional"},
          {"config",
           {{"name", "net"},
            {"layers", std::move(layers)},
            {"input_layers", std::move(inputs)},
            {"output_layers", std::move(outputs)}}}};
}

// A model that is a layer of another one.
Json nested_model(const std::string& name, Json model, std::vector<Json> calls) {
  model["config"]["name"] = name;
  model["name"] = name;
  model["inbound_nodes"] = std::move(calls);
  return model;
}

KerasFunctional read_model(const Json& config) {
  return read_keras_functional(config, "the configuration");
}

std::string refusal(const Json& config) {
  return error_of([&] { read_model(config); });
}

std::vector<std::string> layer_names(const ModelGraph& graph) {
  std::vector<std::string> names;
  for (const ModelGraphLayer& layer : graph.layers) names.push_back(layer.name);
  return names;
}

// Two calls of a shared layer, and their sum.
Json shared_model() {
  return functional(
      {input_entry("x"), input_entry("y"), dense_entry("d", {call_with({output_of("x")}), call_with({output_of("y")})}),
       layer_entry("Add", "sum", {call_with({{output_of("d", 0), output_of("d", 1)}})})},
      {{"x", 0, 0}, {"y", 0, 0}}, {"sum", 0, 0});
}

TEST(KerasFunctionalReader, ReadsASharedLayer) {
  const ModelGraph graph = read_model(shared_model()).graph;

  EXPECT_THAT(layer_names(graph), ElementsAre("d", "sum"));
  ASSERT_EQ(graph.calls.size(), 3U);
  EXPECT_EQ(graph.calls[1].inputs, (std::vector<ModelGraphSource>{{.index = 1}}));
  EXPECT_EQ(graph.calls[2].inputs, (std::vector<ModelGraphSource>{{.call = 0}, {.call = 1}}));
  EXPECT_EQ(graph.outputs, (std::vector<ModelGraphSource>{{.call = 2}}));
}

TEST(KerasFunctionalReader, ReadsTheListsOfKeras2) {
  Json model = shared_model();
  Json& layers = model["config"]["layers"];
  layers[2]["inbound_nodes"] = {{{"x", 0, 0, Json::object()}}, {{"y", 0, 0, Json::object()}}};
  layers[3]["inbound_nodes"] = {{{"d", 0, 0, Json::object()}, {"d", 1, 0, Json::object()}}};
  for (Json& layer : layers) layer.erase("module");
  layers[0]["config"] = {{"batch_input_shape", {nullptr, 2}}, {"name", "x"}};
  model["class_name"] = "Model";

  EXPECT_EQ(model_graph_json(read_model(model).graph), model_graph_json(read_model(shared_model()).graph));
}

// Counts nested models from 1 where Keras does: among outputs, and everywhere in the lists of Keras 2.
Json model_of_models(bool is_old) {
  const Json inner = functional({input_entry("i"), dense_entry("d", {call_with({output_of("i")})})}, {"i", 0, 0},
                                {{"d", 0, 0}, {"i", 0, 0}});
  using Calls = std::vector<Json>;
  // Keras 2 writes a call as a list of its arguments.
  const auto old_source = [](const char* layer, int node, int output) {
    return Json::array({layer, node, output, Json::object()});
  };
  const Calls calls = is_old ? Calls{Json::array({old_source("x", 0, 0)}), Json::array({old_source("sum", 0, 0)})}
                             : Calls{call_with({output_of("x")}), call_with({output_of("sum")})};
  const Calls sum = is_old ? Calls{Json::array({old_source("inner", 1, 0), old_source("inner", 1, 1)})}
                           : Calls{call_with({Json::array({output_of("inner", 0, 0), output_of("inner", 0, 1)})})};
  return functional({input_entry("x"), nested_model("inner", inner, calls), layer_entry("Add", "sum", sum)},
                    {"x", 0, 0}, {{"inner", 2, 0}});
}

TEST(KerasFunctionalReader, FlattensNestedModels) {
  for (const bool is_old : {false, true}) {
    const ModelGraph graph = read_model(model_of_models(is_old)).graph;

    EXPECT_THAT(layer_names(graph), ElementsAre("inner/d", "sum")) << is_old;
    ASSERT_EQ(graph.calls.size(), 3U);
    // The second output of the inner model is its input.
    EXPECT_EQ(graph.calls[1].inputs, (std::vector<ModelGraphSource>{{.call = 0}, {}})) << is_old;
    EXPECT_EQ(graph.calls[2].inputs, (std::vector<ModelGraphSource>{{.call = 1}})) << is_old;
  }
}

TEST(KerasFunctionalReader, ReadsASequentialInASequential) {
  const Json dense_layer = testing::layer("Dense", "d", {{"units", 2}});
  Json inner = testing::sequential({dense_layer, testing::layer("Dropout", "drop", {{"rate", 0.5}})});
  inner["config"]["name"] = "inner";
  const Json outer =
      testing::sequential({testing::layer("InputLayer", "x", {{"batch_shape", {nullptr, 3}}}), dense_layer, inner});

  const ModelGraph graph = read_model(outer).graph;

  EXPECT_THAT(layer_names(graph), ElementsAre("d", "inner/d", "inner/drop"));
  EXPECT_EQ(graph.inputs[0].shape, (SampleShape{3}));
}

TEST(KerasFunctionalReader, TakesTheShapeOfASequentialFromItsFirstLayer) {
  const Json first = testing::layer("Dense", "d", {{"units", 2}, {"batch_input_shape", {nullptr, 5}}});

  EXPECT_EQ(read_model(testing::sequential({first})).graph.inputs[0].shape, (SampleShape{5}));
  EXPECT_THAT(refusal(testing::sequential({testing::layer("Dense", "d", {{"units", 2}})})), HasSubstr("its shape"));
}

TEST(KerasFunctionalReader, ReadsWhichLayersAreFrozen) {
  Json model = shared_model();
  model["config"]["layers"][2]["config"]["trainable"] = false;

  const auto read = read_model(model);

  EXPECT_TRUE(read.notes.empty());
  for (const ModelGraphLayer& layer : read.graph.layers) EXPECT_EQ(layer.is_frozen, layer.name == "d") << layer.name;
  EXPECT_FALSE(model_graph_json(read.graph)["layers"][0].value("trainable", true));
}

TEST(KerasFunctionalReader, RefusesCyclesAndMissingParts) {
  const auto with = [](const Json& layer, const Json& output = {"d", 0, 0}) {
    return refusal(functional({input_entry("x"), layer}, {"x", 0, 0}, output));
  };

  EXPECT_THAT(with(dense_entry("d", {call_with({output_of("d")})})), HasSubstr("has a cycle through layer \"d\""));
  EXPECT_THAT(with(dense_entry("d", {call_with({output_of("e")})})), HasSubstr("names a layer \"e\" that it lacks"));
  EXPECT_THAT(with(dense_entry("d", {call_with({output_of("x", 1)})})),
              HasSubstr("names call 1 of layer \"x\", which has 1 calls"));
  EXPECT_THAT(with(dense_entry("d", {call_with({output_of("x", -1)})})), HasSubstr("names call -1"));
  EXPECT_THAT(with(dense_entry("d", {call_with({output_of("x", 0, 1)})})), HasSubstr("names output 1 of layer \"x\""));
  EXPECT_THAT(with(dense_entry("d", {call_with({output_of("x")})}), {"d", 1, 0}),
              HasSubstr("names call 1 of layer \"d\""));
  EXPECT_THAT(with(dense_entry("d", {call_with({output_of("x")})}), Json::array()), HasSubstr("has no output_layers"));
  EXPECT_THAT(with(dense_entry("d", Json::array())), HasSubstr("names call 0 of layer \"d\", which has 0 calls"));
  EXPECT_THAT(with(dense_entry("d", {call_with(Json::array())})), HasSubstr("calls layer \"d\" without a value"));
  EXPECT_THAT(with(dense_entry("x", {call_with({output_of("x")})})), HasSubstr("two layers named \"x\""));
  EXPECT_THAT(with(dense_entry("d", {call_with({output_of("other")})})), StartsWith("invalid_file: the configuration"));
  EXPECT_THAT(refusal(functional({input_entry("x"), input_entry("y"), dense_entry("d", {call_with({output_of("y")})})},
                                 {"x", 0, 0}, {"d", 0, 0})),
              HasSubstr("lacks \"y\" among its inputs"));
  EXPECT_THAT(refusal(functional({dense_entry("d", {call_with({output_of("d")})})}, {"d", 0, 0}, {"d", 0, 0})),
              HasSubstr("which is not an InputLayer"));
}

TEST(KerasFunctionalReader, RefusesArgumentsThatHoldfastDoesNotHave) {
  const auto with = [](Json node) {
    return refusal(functional({input_entry("x"), dense_entry("d", {std::move(node)})}, {"x", 0, 0}, {"d", 0, 0}));
  };
  Json masked = call_with({output_of("x")});
  masked["kwargs"] = {{"mask", output_of("x")}};
  Json training = call_with({output_of("x")});
  training["kwargs"] = {{"training", false}, {"mask", nullptr}};

  EXPECT_THAT(with(masked), HasSubstr("is called with the argument \"mask\""));
  EXPECT_EQ(with(training), "");
  EXPECT_THAT(with(call_with({output_of("x"), "text"})), HasSubstr("neither a value nor a number"));
}

// The model of one call, which has the argument `training`.
KerasFunctional read_in_mode(Json layer, bool training) {
  layer["inbound_nodes"][0]["kwargs"] = {{"training", training}};
  const Json name = layer["name"];
  const Json output = layer.contains("module") ? Json{name, 0, 0} : Json{name, 1, 0};
  return read_model(functional({input_entry("x"), std::move(layer)}, {"x", 0, 0}, output));
}

TEST(KerasFunctionalReader, FreezesANormalizationThatRunsAsInInference) {
  const Json norm = layer_entry("BatchNormalization", "bn", {call_with({output_of("x")})});
  Json frozen = norm;
  frozen["config"]["trainable"] = false;

  const KerasFunctional read = read_in_mode(norm, false);
  const KerasFunctional same = read_in_mode(frozen, false);

  EXPECT_TRUE(read.graph.layers[0].is_frozen);
  EXPECT_THAT(read.notes, ElementsAre(HasSubstr("layer \"bn\" is called with training=False: Holdfast freezes it")));
  EXPECT_TRUE(same.graph.layers[0].is_frozen);
  EXPECT_TRUE(same.notes.empty()) << "Keras does not train it either";
}

TEST(KerasFunctionalReader, FreezesNormalizationsOfAModelThatRunsAsInInference) {
  const Json inner =
      functional({input_entry("i"), layer_entry("BatchNormalization", "bn", {call_with({output_of("i")})}),
                  dense_entry("d", {call_with({output_of("bn")})})},
                 {"i", 0, 0}, {"d", 0, 0});

  const KerasFunctional read = read_in_mode(nested_model("base", inner, {call_with({output_of("x")})}), false);

  EXPECT_TRUE(read.graph.layers[0].is_frozen);
  EXPECT_FALSE(read.graph.layers[1].is_frozen) << "weights of other layers are trained on";
  EXPECT_THAT(read.notes, ElementsAre(HasSubstr("layer \"base\" is called with training=False, which acts on "
                                                "\"base/bn\": ")));
}

TEST(KerasFunctionalReader, SaysThatADropoutOfPredictionsIsLost) {
  const Json drop = layer_entry("Dropout", "drop", {call_with({output_of("x")})}, {{"rate", 0.5}});
  const Json dense = dense_entry("d", {call_with({output_of("x")})});

  EXPECT_THAT(read_in_mode(drop, true).notes,
              ElementsAre(HasSubstr("layer \"drop\" is called with training=True: Holdfast has no such argument")));
  EXPECT_TRUE(read_in_mode(drop, false).notes.empty()) << "Keras writes this for each call, and drops in training";
  EXPECT_TRUE(read_in_mode(dense, true).notes.empty()) << "it computes the same in both modes";
}

TEST(KerasFunctionalReader, RefusesNamesInputsAndSizesThatHoldfastDoesNotAccept) {
  const auto with_shape = [](const Json& shape, const char* dtype = "float32") {
    const Json input = layer_entry("InputLayer", "x", Json::array(), {{"batch_shape", shape}, {"dtype", dtype}});
    return refusal(functional({input, dense_entry("d", {call_with({output_of("x")})})}, {"x", 0, 0}, {"d", 0, 0}));
  };
  EXPECT_THAT(with_shape({nullptr, nullptr}), HasSubstr("no fixed extent along axis 1"));
  EXPECT_THAT(with_shape({nullptr, 1 << 30, 1 << 30}), HasSubstr("no fixed extent along axis 2"));
  EXPECT_THAT(with_shape(3), HasSubstr("does not say its shape"));
  EXPECT_THAT(with_shape(std::vector<Json>{nullptr}), HasSubstr("one number for each sample and no axis"));
  EXPECT_EQ(with_shape(std::vector<int>(33, 1)), "");
  EXPECT_THAT(with_shape(std::vector<int>(34, 1)), HasSubstr("has 33 axes without that of the samples"));
  EXPECT_THAT(with_shape({nullptr, 2}, "complex64"), HasSubstr("is of type \"complex64\""));
  EXPECT_THAT(refusal(functional({input_entry("x"), dense_entry("two words", {call_with({output_of("x")})})},
                                 {"x", 0, 0}, {"two words", 0, 0})),
              HasSubstr("has a name that Holdfast does not accept"));
  EXPECT_THAT(refusal({{"class_name", "MyModel"}, {"config", Json::object()}}), HasSubstr("nor a functional model"));
}

TEST(KerasFunctionalReader, RefusesNamesOfNestedModelsAsThoseOfLayers) {
  const Json inner =
      functional({input_entry("i"), dense_entry("d", {call_with({output_of("i")})})}, {"i", 0, 0}, {"d", 0, 0});
  const auto named = [&](const std::string& name) {
    return refusal(functional({input_entry("x"), nested_model(name, inner, {call_with({output_of("x")})})}, {"x", 0, 0},
                              {name, 1, 0}));
  };

  EXPECT_EQ(named("inner"), "");
  EXPECT_THAT(named("a/b"), HasSubstr("has a name that Holdfast does not accept"));
  EXPECT_THAT(named(std::string(81, 'n')), HasSubstr("has a name that Holdfast does not accept"));
}

TEST(KerasFunctionalReader, RefusesTheSmallestNumberOfACall) {
  Json model = model_of_models(false);
  Json& outputs = model["config"]["output_layers"];
  outputs = {"inner", std::numeric_limits<std::int64_t>::min(), 0};

  EXPECT_THAT(refusal(model), HasSubstr("names call -9223372036854775808"));
}

TEST(KerasFunctionalReader, RefusesMoreOutputsThanModelsHave) {
  const auto with_outputs = [](std::size_t count) {
    return refusal(functional({input_entry("x"), dense_entry("d", {call_with({output_of("x")})})}, {"x", 0, 0},
                              std::vector<Json>(count, Json::array({"d", 0, 0}))));
  };

  EXPECT_EQ(with_outputs(256), "");
  EXPECT_THAT(with_outputs(257), HasSubstr("has more than 256 output_layers"));
}

TEST(KerasFunctionalReader, CountsCallsThatNoOutputNeeds) {
  const std::vector<Json> calls(20'001, call_with({output_of("x")}));

  EXPECT_THAT(refusal(functional({input_entry("x"), dense_entry("d", calls)}, {"x", 0, 0}, {"d", 0, 0})),
              HasSubstr("more than 20000 layers and calls of layers"));
}

TEST(KerasFunctionalReader, NamesTheStepsOfEachCallOfAFunction) {
  const Json input = layer_entry("InputLayer", "x", {}, {{"batch_shape", {nullptr, 2, 3, 4}}});
  const Json sum = {{"module", "keras.src.ops.numpy"},
                    {"class_name", "Sum"},
                    {"config", {{"name", "s"}, {"axis", {1, 3}}, {"keepdims", false}}},
                    {"name", "s"},
                    {"inbound_nodes", std::vector<Json>(2, call_with({output_of("x")}))}};
  const Json add = layer_entry("Add", "add", {call_with({{output_of("s", 0), output_of("s", 1)}})});

  const ModelGraph graph = read_model(functional({input, sum, add}, {"x", 0, 0}, {"add", 0, 0})).graph;

  EXPECT_THAT(layer_names(graph), ElementsAre("s.0", "s.1", "s", "s.call1.0", "s.call1.1", "s.call1", "add"));
  ASSERT_EQ(graph.calls.size(), 7U);
  EXPECT_EQ(graph.layers[graph.calls[5].layer].config["operation"], "reshape");
}

// A Sequential of one TimeDistributed layer on three steps of [4, 2].
Json distributed(const char* class_name, Json config) {
  return testing::sequential(
      {testing::layer("InputLayer", "x", {{"batch_shape", {nullptr, 3, 4, 2}}}),
       testing::layer("TimeDistributed", "td",
                      {{"layer", {{"class_name", class_name}, {"config", std::move(config)}}}})});
}

TEST(KerasFunctionalReader, GivesAllStepsToALayerOfTheLastAxis) {
  const ModelGraph graph = read_model(distributed("Dense", {{"units", 5}})).graph;

  EXPECT_THAT(layer_names(graph), ElementsAre("td/layer"));
  EXPECT_EQ(graph.layers[0].kind, "Dense");
}

TEST(KerasFunctionalReader, CallsAnyOtherLayerForEachStep) {
  const ModelGraph graph = read_model(distributed("Flatten", Json::object())).graph;

  EXPECT_EQ(graph.calls.size(), 13U);
  EXPECT_EQ(std::ranges::count(graph.layers, "td/layer", &ModelGraphLayer::name), 1);
  EXPECT_EQ(graph.layers.back().name, "td");
  EXPECT_EQ(graph.calls.back().inputs.size(), 3U);
  EXPECT_EQ(shapes_of_calls(graph).back().front(), (SampleShape{3, 8}));
  // Along an axis that is counted from the first one, further axes would move it.
  EXPECT_GT(read_model(distributed("Softmax", {{"axis", 1}})).graph.calls.size(), 1U);
}

TEST(KerasFunctionalReader, SaysWhichLayerCannotBeDistributed) {
  EXPECT_THAT(refusal(distributed("ConvLSTM1D", Json::object())), HasSubstr("its layer \"td/layer\" (\"ConvLSTM1D\")"));
  EXPECT_THAT(
      refusal(testing::sequential({testing::layer("InputLayer", "x", {{"batch_shape", {nullptr, 3}}}),
                                   testing::layer("TimeDistributed", "td", {{"layer", {{"class_name", "Flatten"}}}})})),
      HasSubstr("needs one sequence"));
}

TEST(KerasFunctionalReader, ReadsTheScoresOfAnAttentionAsASecondOutput) {
  const Json input = layer_entry("InputLayer", "x", {}, {{"batch_shape", {nullptr, 5, 4}}});
  Json call = call_with({output_of("x"), output_of("x")});
  call["kwargs"]["return_attention_scores"] = true;
  const Json attention = layer_entry("MultiHeadAttention", "a", {call},
                                     {{"num_heads", 2}, {"key_dim", 3}, {"value_dim", 3}, {"attention_axes", {1}}});

  const ModelGraph graph = read_model(functional({input, attention}, {"x", 0, 0}, {{"a", 0, 0}, {"a", 0, 1}})).graph;

  EXPECT_EQ(graph.layers[0].config["return_attention_scores"], true);
  EXPECT_EQ(graph.outputs[1], (ModelGraphSource{.call = 0, .index = 1}));
  EXPECT_EQ(shapes_of_calls(graph)[0][1], (SampleShape{2, 5, 5}));
}

TEST(KerasFunctionalReader, FreezesLayersThatHaveTheirWeightsInParts) {
  const Json lstm = testing::layer("LSTM", "rnn", {{"units", 2}, {"trainable", false}});
  const Json model = testing::sequential({testing::layer("InputLayer", "x", {{"batch_shape", {nullptr, 3, 4}}}), lstm});

  EXPECT_TRUE(read_model(model).graph.layers[0].is_frozen);
}

TEST(KerasFunctionalReader, RefusesLongChainsWithoutRecursion) {
  std::vector<Json> layers = {input_entry("x")};
  std::string last = "x";
  for (int i = 0; i < 5'000; ++i) {
    const std::string name = "d" + std::to_string(i);
    layers.push_back(dense_entry(name, {call_with({output_of(last)})}));
    last = name;
  }
  // No call can be made as it is read.
  std::reverse(layers.begin(), layers.end());

  EXPECT_THAT(refusal(functional(layers, {"x", 0, 0}, {last, 0, 0})), HasSubstr("more than 1024 calls"));
}

TEST(KerasFunctionalReader, RefusesModelsInModelsThatMultiply) {
  Json model =
      functional({input_entry("i"), dense_entry("d", {call_with({output_of("i")})})}, {"i", 0, 0}, {"d", 0, 0});
  for (int level = 0; level < 30; ++level) {
    const Json twice = {call_with({output_of("i")}), call_with({output_of("m")})};
    model = functional({input_entry("i"), nested_model("m", model, twice)}, {"i", 0, 0}, {"m", 2, 0});
  }
  EXPECT_THAT(refusal(model), HasSubstr("more than 1024 calls"));

  // The same without any layer.
  Json empty = functional({input_entry("i")}, {"i", 0, 0}, {"i", 0, 0});
  for (int level = 0; level < 40; ++level) {
    const Json twice = {call_with({output_of("i")}), call_with({output_of("m")})};
    empty = functional({input_entry("i"), nested_model("m", empty, twice)}, {"i", 0, 0}, {"m", 2, 0});
  }
  EXPECT_THAT(refusal(empty), HasSubstr("layers and calls of layers"));
}

TEST(KerasFunctionalReader, RefusesDeepNesting) {
  Json model = testing::sequential({testing::layer("Dense", "d", {{"units", 2}})});
  for (int level = 0; level < 100; ++level) {
    Json outer = testing::sequential({model});
    outer["config"]["build_input_shape"] = {nullptr, 2};
    model = outer;
  }
  Json arguments = output_of("x");
  for (int level = 0; level < 100; ++level) arguments = Json::array({arguments});

  EXPECT_THAT(refusal(model), HasSubstr("deeper than 64 levels"));
  EXPECT_THAT(
      refusal(functional({input_entry("x"), dense_entry("d", {call_with(arguments)})}, {"x", 0, 0}, {"d", 0, 0})),
      HasSubstr("neither a value nor a number"));
}

// Puts `stranger` in place of one value after another, at any depth.
void replace_each(Json& whole, Json& place, const Json& stranger, std::size_t& refused) {
  for (Json& element : place) {
    Json kept = std::exchange(element, stranger);
    const std::string error = refusal(whole);
    if (!error.empty()) ++refused;
    EXPECT_THAT(error, AnyOf("", StartsWith("invalid_file: "), StartsWith("unsupported: ")));
    element = std::move(kept);
    if (element.is_structured()) replace_each(whole, element, stranger, refused);
  }
}

TEST(KerasFunctionalReader, OnlyThrowsErrorsWhateverItReads) {
  std::size_t refused = 0;
  for (const Json& model : {shared_model(), model_of_models(false), model_of_models(true)}) {
    for (const Json& stranger : std::vector<Json>{nullptr,
                                                  -1,
                                                  1.5,
                                                  18446744073709551615U,
                                                  "text",
                                                  "",
                                                  Json::array(),
                                                  Json::object(),
                                                  {{"x", 0, 0}},
                                                  {{"class_name", "Sequential"}}}) {
      Json whole = model;
      replace_each(whole, whole, stranger, refused);
    }
  }
  EXPECT_GT(refused, 500U);
}

}  // namespace
}  // namespace holdfast::format
