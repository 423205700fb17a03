#pragma once

// Makes one kernel of operations on elements that follow one another, so that what lies between them is neither written
// nor read.

#include "nn/graph/graph.h"

namespace holdfast {

// An operation on elements joins the only operation that reads its output. Both are of the same pass, and their outputs
// have the same shape. The array between them is then made by no kernel. What the caller reads, and what is kept for
// the backward pass, is read by others too and stays. At no time do more arrays live than before. No bit changes, since
// numbers between instructions are floats either way.
Graph fuse_elements(const Graph& graph);

}  // namespace holdfast
