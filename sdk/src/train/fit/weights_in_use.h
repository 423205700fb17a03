#pragma once

// Has a Trainable read the averages for a while. What ends the while by an exception, such as the end of a generation,
// must leave it as it was: the next step computes with the parameters.

#include "holdfast/train/trainable.h"
#include "holdfast/train/weights.h"

namespace holdfast {

class WeightsInUse {
 public:
  WeightsInUse(Trainable& trainable, Weights weights) : trainable_(trainable) {
    trainable_.read_averages(weights == Weights::averaged);
  }
  ~WeightsInUse() { trainable_.read_averages(false); }
  WeightsInUse(const WeightsInUse&) = delete;
  WeightsInUse& operator=(const WeightsInUse&) = delete;

 private:
  Trainable& trainable_;
};

}  // namespace holdfast
