#pragma once

// Which of the weights of a training state are read, where the optimizer keeps moving averages (weight_average.h):
//
//   const Model model = load_model(path_of_savepoint, Weights::averaged);
//
// A state without averages has trained weights alone. So has a file that was written with SaveOptions::weights_only, in
// which these may be the averages. Asking either for averages throws Error{invalid_argument}.

namespace holdfast {

enum class Weights {
  trained,   // the parameters themselves
  averaged,  // their moving averages; frozen layers and buffers as they are
};

}  // namespace holdfast
