#pragma once

// Finds out whether a sample that is trained on can also be used for validation. It looks at the stages
// of both data sets, not at their samples or draws. So it reads no sample, and the answer is the same
// for every seed and every number of epochs.

#include <cstdint>
#include <optional>

#include "holdfast/data/dataset.h"

namespace holdfast {

// How many samples of the source are shared, for the error that reports it.
struct SharedSamples {
  std::int64_t shared = 0;            // samples that both can reach
  std::int64_t of_validation = 0;     // samples that validation can reach
  bool are_mixed_by_shuffle = false;  // without shuffle() no sample would be shared
};

// Returns nothing if no sample can be shared. All epochs count: a shuffle() can bring each sample of a
// window to every place in it. Both data sets must have one source, which is the same object or one of
// equal content. Two objects do not count if both data sets make their features with map(Shape, ...):
// the sources may then hold numbers of samples that lie in separate files.
std::optional<SharedSamples> shared_samples(const Dataset& training, const Dataset& validation);

}  // namespace holdfast
