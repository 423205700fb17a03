#pragma once

// Makes one operation of reductions over rows and of functions of elements that follow one another, as a layer
// normalization and its gradient are. A row is then read from memory once and stays in the first-level cache.

#include "nn/graph/graph.h"

namespace holdfast {

// A row is the last axis of a value. Operations are joined if each of their arrays has the same rows, one number a row,
// or the same numbers for all rows; rows have at least `least_row` numbers. What nothing else reads is then made by no
// kernel. Sums over samples join if a sample is one row. At no time do more arrays live than before. No bit changes:
// each instruction has the order of its operation. For plans of the host.
Graph fuse_rows(const Graph& graph, std::int64_t least_row);

}  // namespace holdfast
