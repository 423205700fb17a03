#pragma once

// What a process does before it says that it is ready, so that a hot spare's first step takes no longer than any other:
// the libraries choose their kernels, and memory is there, at the first use.

#include "holdfast/data/dataset.h"
#include "holdfast/train/trainable.h"
#include "train/context/place.h"

namespace holdfast {

enum class WarmUp { training, inference };

// Computes a shard of each size that there is, of the first batch and of a last one that is smaller, on each of
// `workers`, for which the Trainable is prepared, and keeps nothing of it: the state stays as it is.
void warm_up(const Replica::Place& place, Trainable& trainable, const Dataset& data, int workers, WarmUp what);

}  // namespace holdfast
