#pragma once

// Takes the product that ends a model out of a graph of it. Scores over a large vocabulary are by far the largest array
// of a language model; without the product, neither they nor their gradient are arrays of the graph. ProductTiles
// (product_tiles.h) computes it then, some rows at a time.

#include <cstddef>
#include <cstdint>
#include <limits>

#include "nn/graph/graph.h"

namespace holdfast {

// results = input x kernel + bias, for each row of the input.
struct LastProduct {
  static constexpr std::size_t kNoEntry = std::numeric_limits<std::size_t>::max();

  std::int64_t rows = 0;     // of a sample
  std::int64_t inputs = 0;   // of a row
  std::int64_t outputs = 0;  // of a row
  bool has_bias = false;
  // Gradients that the backward pass of the graph needs; all false of a graph for inference.
  bool has_input_gradient = false;
  bool has_weight_gradients = false;
  // The parameters whose gradients are those of kernel and bias as they are. They are then written to the arena of
  // gradients, and no operation of the graph does it.
  std::size_t kernel_entry = kNoEntry;
  std::size_t bias_entry = kNoEntry;
};

// The outputs of the graph are the operands of the product: input, kernel and, with a bias, the bias. Its backward pass
// begins with the gradients of these three, in this order; the last one has no readers without a bias.
struct GraphBeforeProduct {
  Graph graph;
  LastProduct product;
};

// No other bit changes than those of sums over rows. Throws Error{invalid_argument} unless the graph has one output, a
// product with samples that nothing else reads.
GraphBeforeProduct without_last_product(const Graph& graph);

}  // namespace holdfast
