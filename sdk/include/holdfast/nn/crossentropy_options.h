#pragma once

// What the cross-entropies have in common.

namespace holdfast {

struct CrossentropyOptions {
  bool from_logits = false;  // outputs are scores before the softmax or sigmoid, not probabilities
  // Take the outputs of any last layer. Otherwise a Trainer refuses, with Error{invalid_argument}, from_logits after a
  // softmax or sigmoid, and probabilities after any other activation, the linear one included: both train, and badly.
  // What is not known, as of an application's own layer, is taken.
  bool accept_any_activation = false;
};

}  // namespace holdfast
