#pragma once

// Which of the weights of a training state are read, where the optimizer keeps moving averages (weight_average.h).

namespace holdfast {

enum class Weights {
  trained,   // the parameters themselves
  averaged,  // their moving averages; frozen layers and buffers as they are
};

}  // namespace holdfast
