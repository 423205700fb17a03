#pragma once

// In which order the gradients of a batch's shards are added.

#include <string_view>

namespace holdfast {

// Either way every replica holds the same bits as the others, and a failure costs a pause. They differ in what those
// bits are a function of.
enum class Reduction {
  // In one fixed tree over the shards. The bits depend on nothing but the run's options: 1, 2, 3 or 4 replicas give the
  // same, and so does a run that lost replicas, shrank, grew, or was resumed with another number of them.
  shard_order,
  // On GPUs in the order that NCCL takes (ncclAllReduce). The bits depend on the number of replicas, on how the shards
  // are dealt to them, on which GPUs they have, and on NCCL's version. So a replacement keeps the bits only where it
  // takes the lost one's place; while fewer or more replicas than at the run's first start train, or other ones compute
  // a shard, the bits differ from those of a run without failures. Each time that begins, a warning and a line
  // "sums_reordered" in the journal say so. A start with another number of replicas than the first one is refused
  // unless SuperviseOptions::accept_other_arithmetic is set. Savepoints say that they were trained so.
  // On CPUs the shards' order is the fastest there is, and is taken: nothing of this holds there.
  fastest,
};

// "shard_order", "fastest".
std::string_view name(Reduction reduction);
// Throws Error{invalid_argument} for a name that no reduction has.
Reduction reduction_from_name(std::string_view name);

}  // namespace holdfast
