#pragma once

// Decides where the arrays of a graph lie, for one number of samples.
//
// An array lies in a base, which is memory of the caller, or in the plan's own arena. In the arena, arrays share memory
// if no operation needs both at a time: an array lives from the operation that makes it to the last one that reads it.
// An operation may write its output over its first input where that is the input's last use. Where arrays lie changes
// no bit of them.

#include <vector>

#include "holdfast/core/arena.h"
#include "nn/graph/graph.h"
#include "nn/plan/sample_tiles.h"

namespace holdfast {

// The memory that an array lies in.
enum class Base : std::uint8_t { arena, parameters, buffers, gradients, contributions, first_external };

struct ArrayPlace {
  // Base::first_external + i is input i of the model; the gradients of its outputs come after the inputs.
  std::size_t base = 0;
  std::size_t offset = 0;  // in bytes
};

struct MemoryPlan {
  std::vector<ArrayPlace> places;  // by array
  std::size_t arena_bytes = 0;
};

struct MemoryOptions {
  std::int64_t samples = 1;
  std::size_t inputs = 1;  // of the model
  const ArenaLayout& parameters;
  const ArenaLayout& buffers;
  // For tests: each array has memory of its own, so that no two share any.
  bool shares_memory = true;
  // For tests: false leaves each operation on elements a kernel of its own.
  bool fuses_elements = true;
  // Shorter rows are left to operations one by one (row_fusion.h), which need less dispatch for each row. 0: so are
  // all.
  std::int64_t least_row = 32;
  // What a group of operations should find in the cache of a core (sample_tiles.h). Half of what most machines have, as
  // the other half holds what is read next.
  std::size_t tile_bytes = std::size_t{256} << 10;
};

// With `tiles`, their groups are one operation each: what one of them needs lives through all of it.
MemoryPlan plan_memory(const Graph& graph, const MemoryOptions& options, const SampleTiles& tiles = {});

}  // namespace holdfast
