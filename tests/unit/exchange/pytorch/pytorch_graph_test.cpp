// Graphs with shared layers, joined images and images that are flattened, on their way to PyTorch.

#include "pytorch/pytorch_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/format/exchange/pytorch.h"
#include "unit/exchange/support/pytorch_sets.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;
using testing::Thrown;
using testing::thrown_by;
using namespace pytorch_sets;

// A savepoint of a graph. A layer has a list of the values that each of its calls takes.
ArraySet graph_of(const nlohmann::json& inputs, const nlohmann::json& layers, const nlohmann::json& calls,
                  std::vector<NamedArray> arrays) {
  std::sort(arrays.begin(), arrays.end(), [](const NamedArray& a, const NamedArray& b) { return a.name < b.name; });
  nlohmann::json graph = {{"format", "holdfast.model"}, {"version", 1}, {"inputs", inputs}, {"layers", layers}};
  graph["calls"] = calls;
  graph["outputs"] = nlohmann::json::parse("[[" + std::to_string(calls.size() - 1) + ", 0]]");
  return {.arrays = std::move(arrays), .metadata = nlohmann::json{{"kind", "savepoint"}, {"graph", graph}}.dump()};
}

nlohmann::json json_of(const char* text) {
  return nlohmann::json::parse(text);
}

TEST(PyTorchGraph, TakesGraphsWithSharedLayers) {
  const auto inputs = json_of(R"([{"name": "x", "shape": [4, 5, 3], "dtype": "f32"}])");
  const auto layers = json_of(R"([
      {"kind": "Conv2D", "name": "net/conv", "config": {}}, {"kind": "Add", "name": "sum", "config": {}},
      {"kind": "Flatten", "name": "flat", "config": {}}, {"kind": "Dense", "name": "fc", "config": {}}])");
  const auto calls = json_of(R"([{"layer": 0, "inputs": [[-1, 0]]}, {"layer": 0, "inputs": [[0, 0]]},
      {"layer": 1, "inputs": [[0, 0], [1, 0]]}, {"layer": 2, "inputs": [[2, 0]]}, {"layer": 3, "inputs": [[3, 0]]}])");
  const ArraySet set = graph_of(
      inputs, layers, calls, {numbered("model/net/conv/kernel", {1, 1, 3, 3}), numbered("model/fc/kernel", {60, 2})});

  const ArraySet state = to_pytorch(set);

  EXPECT_EQ(names_of(state), (std::vector<std::string>{"fc.weight", "net.conv.weight"}));
  EXPECT_EQ(at(get(state, "fc.weight"), {1, (2 * 4 + 3) * 5 + 4}),
            at(get(set, "model/fc/kernel"), {(3 * 5 + 4) * 3 + 2, 1}));
  expect_round_trip(set);
}

// Two inputs, a layer that joins them, Flatten and a Dense with the given number of inputs.
ArraySet joined_images(const nlohmann::json& a, const nlohmann::json& b, const nlohmann::json& layer,
                       std::uint64_t inputs) {
  const auto graph_inputs = nlohmann::json::array(
      {{{"name", "a"}, {"shape", a}, {"dtype", "f32"}}, {{"name", "b"}, {"shape", b}, {"dtype", "f32"}}});
  const auto layers = nlohmann::json::array({layer,
                                             {{"kind", "Flatten"}, {"name", "flat"}, {"config", json_of("{}")}},
                                             {{"kind", "Dense"}, {"name", "fc"}, {"config", json_of("{}")}}});
  const auto calls = json_of(R"([{"layer": 0, "inputs": [[-1, 0], [-1, 1]]}, {"layer": 1, "inputs": [[0, 0]]},
                                 {"layer": 2, "inputs": [[1, 0]]}])");
  return graph_of(graph_inputs, layers, calls, {numbered("model/fc/kernel", {inputs, 2})});
}

TEST(PyTorchGraph, CountsTheChannelsOfJoinedImages) {
  const ArraySet scaled =
      joined_images({4, 5, 1}, {4, 5, 8}, json_of(R"({"kind": "Multiply", "name": "join", "config": {}})"), 4 * 5 * 8);
  // Row 3, column 4, channel 6.
  EXPECT_EQ(at(get(to_pytorch(scaled), "fc.weight"), {1, (6 * 4 + 3) * 5 + 4}),
            at(get(scaled, "model/fc/kernel"), {(3 * 5 + 4) * 8 + 6, 1}));

  const ArraySet stacked = joined_images(
      {2, 5, 3}, {2, 5, 3}, json_of(R"({"kind": "Concatenate", "name": "join", "config": {"axis": 0}})"), 4 * 5 * 3);
  EXPECT_EQ(at(get(to_pytorch(stacked), "fc.weight"), {1, (2 * 4 + 3) * 5 + 4}),
            at(get(stacked, "model/fc/kernel"), {(3 * 5 + 4) * 3 + 2, 1}));

  const ArraySet side_by_side = joined_images(
      {4, 5, 3}, {4, 5, 2}, json_of(R"({"kind": "Concatenate", "name": "join", "config": {"axis": 2}})"), 4 * 5 * 5);
  EXPECT_EQ(at(get(to_pytorch(side_by_side), "fc.weight"), {1, (4 * 4 + 3) * 5 + 4}),
            at(get(side_by_side, "model/fc/kernel"), {(3 * 5 + 4) * 5 + 4, 1}));
}

TEST(PyTorchGraph, RefusesToFlattenAnImageOfUnknownChannels) {
  const auto inputs = json_of(R"([{"name": "a", "shape": [4, 5, 3], "dtype": "f32"},
                                  {"name": "b", "shape": [60], "dtype": "f32"}])");
  const auto layers = json_of(R"([
      {"kind": "Reshape", "name": "shape", "config": {"target_shape": [4, 5, -1]}},
      {"kind": "Add", "name": "sum", "config": {}}, {"kind": "Flatten", "name": "flat", "config": {}}])");
  const auto calls = json_of(R"([{"layer": 0, "inputs": [[-1, 1]]}, {"layer": 1, "inputs": [[-1, 0], [0, 0]]},
                                 {"layer": 2, "inputs": [[1, 0]]}])");

  const Thrown thrown = thrown_by([&] { to_pytorch(graph_of(inputs, layers, calls, {})); });

  EXPECT_EQ(thrown.code, ErrorCode::unsupported);
  EXPECT_THAT(thrown.sentence, HasSubstr("layer \"flat\" is of kind \"Flatten\", which flattens an image"));
}

TEST(PyTorchGraph, RefusesGroupsOfAFlattenedImage) {
  const auto inputs = json_of(R"([{"name": "x", "shape": [4, 5, 4], "dtype": "f32"}])");
  const auto calls = json_of(R"([{"layer": 0, "inputs": [[-1, 0]]}, {"layer": 1, "inputs": [[0, 0]]}])");
  const auto set_of = [&](int groups) {
    auto layers = json_of(R"([{"kind": "Flatten", "name": "flat", "config": {}},
                              {"kind": "GroupNormalization", "name": "norm", "config": {}}])");
    layers[1]["config"]["groups"] = groups;
    return graph_of(inputs, layers, calls, {numbered("model/norm/gamma", {80})});
  };

  EXPECT_EQ(at(get(to_pytorch(set_of(1)), "norm.weight"), {1}), at(get(set_of(1), "model/norm/gamma"), {4}));
  const Thrown thrown = thrown_by([&] { to_pytorch(set_of(2)); });
  EXPECT_EQ(thrown.code, ErrorCode::unsupported);
  EXPECT_THAT(thrown.sentence, HasSubstr("has groups of a flattened image"));
}

TEST(PyTorchGraph, RefusesGraphsThatMixTheOrdersOfImages) {
  const auto inputs = json_of(R"([{"name": "x", "shape": [4, 5, 3], "dtype": "f32"},
                                  {"name": "y", "shape": [60], "dtype": "f32"}])");
  const auto sentence = [&](const char* kind) {
    const auto layers = nlohmann::json::array({{{"kind", "Flatten"}, {"name", "flat"}, {"config", json_of("{}")}},
                                               {{"kind", kind}, {"name", "mixed"}, {"config", json_of("{}")}}});
    const auto calls = json_of(R"([{"layer": 0, "inputs": [[-1, 0]]}, {"layer": 1, "inputs": [[0, 0], [-1, 1]]}])");
    const Thrown thrown = thrown_by([&] { to_pytorch(graph_of(inputs, layers, calls, {})); });
    EXPECT_EQ(thrown.code, ErrorCode::unsupported);
    return thrown.sentence;
  };
  EXPECT_THAT(sentence("Add"), HasSubstr("layer \"mixed\" is of kind \"Add\", which takes a flattened image"));
  EXPECT_THAT(sentence("Concatenate"), HasSubstr("takes a flattened image"));
}

}  // namespace
}  // namespace holdfast::format
