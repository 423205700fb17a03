// Fields of NodeDef: the name, the operation, and the names of the nodes whose outputs it takes.
// See docs/decisions/records.md.

#include "callbacks/graph_definition.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "callbacks/protobuf_fields.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// Numbers of fields are those of graph.proto and node_def.proto: a GraphDef has its nodes in field 1.
std::string node(const std::string& name, const std::string& operation, const std::vector<std::string>& inputs) {
  std::string message = protobuf::text_field(1, name) + protobuf::text_field(2, operation);
  for (const std::string& input : inputs) message += protobuf::text_field(3, input);
  return protobuf::text_field(1, message);
}

// A sequential model has no list of calls: each layer takes what the one before it gives.
std::string chain_definition(const Json& graph) {
  std::string nodes = node("input", "Input", {});
  std::string last = "input";
  for (const Json& layer : graph.at("layers")) {
    const auto name = layer.at("name").get<std::string>();
    nodes += node(name, layer.at("kind").get<std::string>(), {last});
    last = name;
  }
  return nodes;
}

std::string model_definition(const Json& graph) {
  std::string nodes;
  std::vector<std::string> inputs;
  for (const Json& input : graph.at("inputs")) {
    inputs.push_back(input.at("name").get<std::string>());
    nodes += node(inputs.back(), "Input", {});
  }
  std::vector<std::string> calls;
  std::map<std::string, int> calls_of;
  for (const Json& call : graph.at("calls")) {
    const Json& layer = graph.at("layers").at(call.at("layer").get<std::size_t>());
    std::string name = layer.at("name").get<std::string>();
    // A layer that is called several times is a node for each call.
    if (const int earlier = calls_of[name]++; earlier > 0) name += fmt::format("_call_{}", earlier + 1);
    std::vector<std::string> taken;
    for (const Json& input : call.at("inputs")) {
      const auto from = input.at(0).get<std::int64_t>();
      const auto index = input.at(1).get<std::size_t>();
      // -1 stands for an input of the model (nn/model/graph_text.cpp).
      if (from < 0) {
        taken.push_back(inputs.at(index));
      } else {
        const std::string& source = calls.at(static_cast<std::size_t>(from));
        // TensorFlow writes an output after the first one with its number, as in "split:1".
        taken.push_back(index == 0 ? source : fmt::format("{}:{}", source, index));
      }
    }
    nodes += node(name, layer.at("kind").get<std::string>(), taken);
    calls.push_back(name);
  }
  return nodes;
}

}  // namespace

std::string graph_definition(const std::string& text) {
  // The text comes from the model itself, so at() finds what its format has. For another format the definition is
  // empty, and no graph is written.
  const Json graph = Json::parse(text, nullptr, false);
  const Json format = graph.is_object() ? graph.value("format", Json()) : Json();
  std::string nodes;
  if (format == "holdfast.sequential") nodes = chain_definition(graph);
  if (format == "holdfast.model") nodes = model_definition(graph);
  return nodes;
}

}  // namespace holdfast
