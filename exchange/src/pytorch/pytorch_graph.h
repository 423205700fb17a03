#pragma once

// The parts of a model's graph that the exchange with PyTorch needs.

#include <string>

#include "keras_layers/model_graph.h"

namespace holdfast::format {

// Layers, and their calls in an order of computation.
using Graph = ModelGraph;
using GraphLayer = ModelGraphLayer;

// Parses the graph of a Sequential or a Model from a savepoint's metadata. Throws Error{invalid_argument} if it has
// none.
Graph parse_graph(const std::string& metadata);

}  // namespace holdfast::format
