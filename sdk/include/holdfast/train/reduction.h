#pragma once

// The order in which the gradients of the shards of a batch are added. Floating-point sums depend on
// it, and so do the bits of a run. SuperviseOptions::reduction chooses it, for all replicas of a run.
//
//   supervise(argc, argv, {.replicas = 4, .run_directory = "run", .reduction = Reduction::fastest}, train);

#include <string_view>

namespace holdfast {

// With either choice all replicas hold the same bits, and a failure costs only a pause. The choices
// differ in what those bits depend on.
enum class Reduction {
  // One fixed tree over the shards. The bits depend only on the options of the run: 1, 2, 3 or 4 replicas give the same
  // bits, and so does a run that lost replicas, shrank, grew, or was resumed with another number of replicas.
  shard_order,
  // On GPUs, the order of NCCL (ncclAllReduce). The bits depend on the number of replicas, on the
  // assignment of shards to them, on their GPUs and on the version of NCCL. A replacement keeps the
  // bits only if it takes the rank of the lost replica.
  //
  // While another number of replicas than at the first start trains, or a shard is computed by another
  // one, the bits differ from those of a run without failures. Each time this begins, a warning and a
  // line "sums_reordered" in the journal say so. A start with another number of replicas than the first
  // one is refused unless SuperviseOptions::accept_other_arithmetic is set. Savepoints record it.
  //
  // On CPUs the order of shards is the fastest there is and is always used, so none of this applies.
  fastest,
};

// The name in options and files: "shard_order" or "fastest".
std::string_view name(Reduction reduction);
// The inverse of name(). Throws Error{invalid_argument} for any other text.
Reduction reduction_from_name(std::string_view name);

}  // namespace holdfast
