#include "holdfast/train/trainable.h"

namespace holdfast {

void Trainable::check_sample_weights(const ArraySpec&) const {
  throw Error(ErrorCode::invalid_argument,
              "the data set has sample weights, which this Trainable does not use; leave them out, or override "
              "Trainable::check_sample_weights()");
}

std::vector<double> Trainable::results(std::span<const double> sums, double weight) const {
  std::vector<double> means;
  for (const double sum : sums) means.push_back(sum / weight);
  return means;
}

}  // namespace holdfast
