#pragma once

// The options that all cross-entropies share. They decide how the outputs of the last layer are read.

#include <cstdint>
#include <optional>

namespace holdfast {

// All but accept_any_activation are part of configuration(); that one concerns a check.
struct CrossentropyOptions {
  bool from_logits = false;  // the outputs are scores before a softmax or sigmoid, not probabilities
  // Accepts any last layer. By default a Trainer refuses two choices that train, but badly, with
  // Error{invalid_argument}: from_logits after a softmax or sigmoid, and probabilities after any other activation,
  // including the linear one. An unknown activation is accepted, such as that of a max pooling of a softmax.
  bool accept_any_activation = false;
  // From 0 to 1: moves each target t to t (1 - s) + s / 2, or + s / classes where an axis has the classes (Szegedy et
  // al., 2016). The loss is then a function of values (value_loss.h), but for class numbers: these need from_logits,
  // and the target is 1 at the class: -log p[target] (1 - s) - s times the mean of log p over all classes, as in
  // PyTorch. Where models run on GPUs, the host computes that one.
  float label_smoothing = 0;
  // For class numbers alone: samples or positions with this target, often -1 or 255, have no loss, and the mean is over
  // all others of the batch, as in Keras. The other cross-entropies refuse it.
  std::optional<std::int64_t> ignore_class = {};
  // For class numbers with from_logits alone: the product that ends the model, its loss and its gradients are computed
  // for so many positions at a time, so that neither the scores nor their gradient lie in memory whole. For a language
  // model this is most of the memory of a pass; some hundreds make a step no slower. 0: all positions of a shard at
  // once. The model has one output, made by a Dense layer without an activation or by reverse() of a
  // ReversibleEmbedding, and its metrics count positions one by one (Metric::position_axes()). Predictions are whole.
  // Sums over positions get another order, so other numbers give other bits.
  std::int64_t positions_at_once = 0;
};

}  // namespace holdfast
