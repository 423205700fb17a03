#include "holdfast/train/trainable.h"

namespace holdfast {

void Trainable::check_sample_weights(const ArraySpec&) const {
  throw Error(ErrorCode::invalid_argument,
              "the data set has sample weights, which this Trainable does not use; leave them out, or override "
              "Trainable::check_sample_weights()");
}

}  // namespace holdfast
