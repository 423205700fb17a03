#pragma once

// Names the variables of an optimizer, which Keras keeps as one numbered list.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "holdfast/format/array_set.h"
#include "keras_files/keras_json.h"
#include "keras_files/keras_model.h"

namespace holdfast::format {

// The type and shape of an optimizer's variable in its file, or of a trainable variable of the model.
struct KerasShape {
  std::string name;  // for a trainable variable: its array, "dense/kernel"
  DType dtype;
  std::vector<std::uint64_t> shape;
};

struct KerasOptimizer {
  Json config;             // {"class_name": ..., "config": ...}; null if unknown
  bool is_keras_3 = true;  // older ones list slot after slot, without a learning rate
};

// Returns "iteration", "learning_rate", "momentum/dense/kernel", ... for each of `variables`. These are in Keras's
// order; `trainables` are the model's trainable variables in its order. If the optimizer or the model's order is
// unknown, or shapes do not fit, all but iteration and learning rate are named by their numbers.
std::vector<std::string> keras_optimizer_names(const KerasOptimizer& optimizer, std::span<const KerasShape> variables,
                                               std::span<const KerasShape> trainables);

}  // namespace holdfast::format
