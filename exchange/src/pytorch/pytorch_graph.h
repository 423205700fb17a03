#pragma once

// What the exchange with PyTorch needs to know of a model's graph.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/format/array_set.h"

namespace holdfast::format {

struct GraphLayer {
  std::string kind;
  std::string name;
};

struct Graph {
  std::vector<std::uint64_t> input_shape;
  std::vector<GraphLayer> layers;
};

// The graph of a Sequential in a savepoint's metadata. Throws Error{invalid_argument} when there is none.
Graph parse_graph(const std::string& metadata);

}  // namespace holdfast::format
