#pragma once

// The names of an optimizer's variables, which Keras keeps as one numbered list.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/format/array_set.h"
#include "keras_files/keras_json.h"
#include "keras_files/keras_model.h"

namespace holdfast::format {

// An optimizer's variable in its file, or a trainable variable of the model.
struct KerasShape {
  std::string name;  // of a trainable variable: its array, "dense/kernel"
  DType dtype;
  std::vector<std::uint64_t> shape;
};

struct KerasOptimizer {
  Json config;             // {"class_name": ..., "config": ...}; null when it is not known
  bool is_keras_3 = true;  // before, all of one slot came first, then all of the next, and no learning rate
};

// "iteration", "learning_rate", "momentum/dense/kernel", ... for each of `variables`, which are in Keras's order;
// `trainables` are the model's trainable variables in its order. Where the optimizer or the model's order is not known,
// or their shapes do not fit, what is no iteration and no learning rate is called by its number.
std::vector<std::string> keras_optimizer_names(const KerasOptimizer& optimizer, std::span<const KerasShape> variables,
                                               std::span<const KerasShape> trainables);

}  // namespace holdfast::format
