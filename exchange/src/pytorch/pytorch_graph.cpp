// The graph may come from a file that anybody wrote, so its form is checked before it is used. Only the members that
// the exchange needs are looked at: a later version may have more.

#include "pytorch/pytorch_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "bytes/json.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

void require(bool condition, const char* problem) {
  if (!condition) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the savepoint's metadata has no valid graph of a Sequential ({}), so its arrays cannot be "
                            "mapped to PyTorch; give a savepoint of a Sequential",
                            problem));
  }
}

// Returns null if the member is missing.
const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

}  // namespace

Graph parse_graph(const std::string& metadata) {
  const Json parsed = Json::parse(metadata, nullptr, false);
  require(parsed.is_object(), "it is not a JSON object");
  const Json& json = member(parsed, "graph");
  require(json.is_object() && member(json, "format") == "holdfast.sequential" && member(json, "version") == 1,
          "its \"graph\" is not of the format holdfast.sequential, version 1");
  // Extents decide sizes later, so signs and fractions are refused here.
  const Json& shape = member(json, "input_shape");
  require(
      shape.is_array() && std::all_of(shape.begin(), shape.end(), [](const Json& n) { return n.is_number_unsigned(); }),
      "its \"input_shape\" is not a list of numbers");
  const Json& layers = member(json, "layers");
  require(layers.is_array(), "its \"layers\" are not a list");
  Graph graph{.input_shape = shape.get<std::vector<std::uint64_t>>(), .layers = {}};
  for (const Json& layer : layers) {
    require(layer.is_object() && member(layer, "kind").is_string() && member(layer, "name").is_string(),
            "a layer has no kind or no name");
    graph.layers.push_back({.kind = layer["kind"], .name = layer["name"]});
  }
  return graph;
}

}  // namespace holdfast::format
