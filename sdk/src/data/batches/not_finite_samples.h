#pragma once

// Looks for the sample that made a step NaN or infinite.

#include <cstdint>
#include <string>

#include "data/batches/batch_loader.h"
#include "holdfast/core/memory_space.h"
#include "holdfast/data/dataset.h"

namespace holdfast {

// Which of the samples that this replica has of a batch of `data` is the first with a NaN or an infinity, and in which
// of its arrays: "sample 15 (\"houses.csv\", line 17) of the data set has nan in its input \"x\"". Empty if all are
// finite. Reads all of them, so it is for a step that failed. `memory` is where a batch on a device lies.
std::string sample_not_finite(const Batch& batch, const Dataset& data, std::uint64_t seed, MemorySpace& memory);

}  // namespace holdfast
