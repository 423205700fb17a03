#pragma once

// The options that all cross-entropies share. They decide how the outputs of the last layer are read.

namespace holdfast {

// Only from_logits is part of configuration(); the other option concerns a check.
struct CrossentropyOptions {
  bool from_logits = false;  // the outputs are scores before a softmax or sigmoid, not probabilities
  // Accepts any last layer. By default a Trainer refuses two choices that train, but badly, with
  // Error{invalid_argument}: from_logits after a softmax or sigmoid, and probabilities after any other
  // activation, including the linear one. An unknown activation is accepted, such as that of a max
  // pooling of a softmax.
  bool accept_any_activation = false;
};

}  // namespace holdfast
