#pragma once

// What a process does before it reports that it is ready, so that a hot spare's first step takes no longer than any
// other. Libraries choose their kernels at the first use, and memory is slow until its pages were touched.

#include "holdfast/data/dataset.h"
#include "holdfast/train/trainable.h"
#include "train/context/replica_context.h"

namespace holdfast {

enum class WarmUp { training, inference };

// Computes a shard of each size that occurs, in the first batch and in a smaller last one, on each of `workers`. The
// Trainable is prepared for as many workers. Nothing is kept: the state stays as it is. `shards_together` is that of
// StepRunner::TrainOptions.
void warm_up(const Replica::Context& context, Trainable& trainable, const Dataset& data, int workers, WarmUp what,
             int shards_together = 1);

}  // namespace holdfast
