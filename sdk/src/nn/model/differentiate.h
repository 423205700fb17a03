#pragma once

// Appends the backward pass to a graph for training (reverse-mode differentiation).

#include "nn/graph/graph_builder.h"

namespace holdfast {

// What a layer adds to the moving averages of buffers; see BufferUpdate.
struct BatchStatistics {
  Value sums;
  std::vector<std::size_t> buffers;
  float momentum = 0;
};

// The gradients of the model's outputs become arrays of the caller. Operations come in the reverse order of the forward
// pass. An array that is used several times gets the sum of its gradients, that of the last use first: g = last; g +=
// the one before; and so on. Bits depend on this order.
//
// The statistics of the batch come first, so that they are complete before any gradient.
void differentiate(GraphBuilder& builder, std::size_t parameters, const std::vector<BatchStatistics>& statistics);

}  // namespace holdfast
