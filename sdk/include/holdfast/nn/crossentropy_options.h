#pragma once

// What the cross-entropies have in common.

namespace holdfast {

struct CrossentropyOptions {
  bool from_logits = false;  // outputs are scores before the softmax or sigmoid, not probabilities
  // Accept the outputs of any last layer. Otherwise a Trainer refuses two choices with Error{invalid_argument}:
  // from_logits after a softmax or sigmoid, and probabilities after any other activation, the linear one included. Both
  // train, and badly. Unknown activations, as of a max pooling of a softmax or of a model without such a layer, are
  // accepted.
  bool accept_any_activation = false;
};

}  // namespace holdfast
