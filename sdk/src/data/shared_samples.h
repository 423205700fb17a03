#pragma once

// Whether a sample that is trained on can be among those that validate: told from the stages of both data sets, not
// from what they draw. So the answer is the same for every seed and number of epochs, and costs no look at a sample.

#include <cstdint>
#include <optional>

#include "holdfast/data/dataset.h"

namespace holdfast {

struct SharedSamples {
  std::int64_t shared = 0;            // samples of the source that both can come to
  std::int64_t of_validation = 0;     // that validation can come to
  bool are_mixed_by_shuffle = false;  // without shuffle() there would be none
};

// Over all epochs: a shuffle() brings each sample of a window to every place in it. Both must have one source: the same
// object, or two of the same content. Two objects do not count where both data sets make their features by
// map(Shape, ...): what the source holds may be numbers of samples then, and the samples in files of their own.
std::optional<SharedSamples> shared_samples(const Dataset& training, const Dataset& validation);

}  // namespace holdfast
