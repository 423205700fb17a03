#pragma once

// The additions of the shard tree on processors, as sum_program() orders them. docs/decisions/sums.md

#include <span>

#include "collective/communicator.h"
#include "collective/shard_tree.h"

namespace holdfast {

// Adds `range` of the leaves as `program` says, into sum[0, range.end - range.begin). Works on blocks of 1024 floats,
// so that the temporaries stay in the caches. Returns whether all sums are finite.
bool add_in_order(std::span<const SumInstruction> program, std::span<const float* const> leaves, FloatRange range,
                  float* sum);

}  // namespace holdfast
