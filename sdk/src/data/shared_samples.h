#pragma once

// Whether a sample that is trained on can also be used for validation. The stages of both data sets tell, not what they
// draw. So the answer is the same for every seed and number of epochs, and no sample is read.

#include <cstdint>
#include <optional>

#include "holdfast/data/dataset.h"

namespace holdfast {

struct SharedSamples {
  std::int64_t shared = 0;            // samples of the source that both can come to
  std::int64_t of_validation = 0;     // that validation can come to
  bool are_mixed_by_shuffle = false;  // without shuffle() no sample would be shared
};

// Over all epochs: a shuffle() brings each sample of a window to every place in it. Both must have one source: the same
// object, or two of the same content. Two objects do not count where both data sets make their features by map(Shape,
// ...): the sources may then hold numbers of samples, and the samples lie in separate files.
std::optional<SharedSamples> shared_samples(const Dataset& training, const Dataset& validation);

}  // namespace holdfast
