#pragma once

// Computes arrays of the forward pass again in the backward pass, so that they need no memory in between.

#include "nn/graph/graph.h"

namespace holdfast {

// For a graph that was differentiated. The backward pass of a segment that is recomputed reads arrays of copies of its
// forward operations. The copies stand before the first operation that reads one of them. They run the kernels of the
// originals, which draw the same numbers and keep what their backward passes need. The statistics of the batch are
// those of the originals.
void recompute_segments(Graph& graph);

}  // namespace holdfast
