#pragma once

// What the cross-entropies have in common.

namespace holdfast {

struct CrossentropyOptions {
  bool from_logits = false;  // outputs are scores before the softmax or sigmoid, not probabilities
};

}  // namespace holdfast
