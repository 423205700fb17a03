#pragma once

// Turns the configuration of a Sequential or functional Keras model into the graph of a model of Holdfast.

#include <string>
#include <vector>

#include "keras_files/keras_json.h"
#include "keras_layers/keras_layer_reader.h"
#include "keras_layers/model_graph.h"

namespace holdfast::format {

struct KerasFunctional {
  ModelGraph graph;                // in Holdfast's order
  std::vector<std::string> notes;  // what a model of Holdfast does not have
  // What layers of Holdfast have and Keras's do not: "encoder/norm/gamma". Their elements are limited in number.
  std::vector<ConstantWeight> weights = {};
};

// `config` is {"class_name": ..., "config": ...} of any version of Keras, and comes from anybody. Layers of nested
// models become layers of the model: "encoder/dense". `label` names the configuration in errors.
// Throws Error{invalid_file} for a configuration that no Keras writes: a missing layer or call, a cycle, a name used
// twice. Throws Error{unsupported} with the layer's name for what Holdfast does not have.
KerasFunctional read_keras_functional(const Json& config, const std::string& label);

}  // namespace holdfast::format
