#pragma once

#include <string>

namespace holdfast {

// The message GraphDef (tensorflow/core/framework/graph.proto) of a model, from the JSON of a savepoint: a node for
// each input and each call of a layer, with the kind of the layer as its operation. Empty for JSON of another kind.
std::string graph_definition(const std::string& graph);

}  // namespace holdfast
