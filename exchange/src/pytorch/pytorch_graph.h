#pragma once

// The parts of a model's graph that the exchange with PyTorch needs.

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

// Parses the graph of a Sequential from a savepoint's metadata. Throws Error{invalid_argument} if it has none.
Graph parse_graph(const std::string& metadata);

}  // namespace holdfast::format
