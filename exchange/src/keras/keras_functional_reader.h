#pragma once

// Turns the configuration of a Sequential or functional Keras model into the graph of a model of Holdfast.

#include <string>
#include <vector>

#include "keras/model_graph.h"
#include "keras_files/keras_json.h"

namespace holdfast::format {

struct KerasFunctional {
  ModelGraph graph;                // in Holdfast's order
  std::vector<std::string> notes;  // what a model of Holdfast does not have
};

// `config` is {"class_name": ..., "config": ...} of any version of Keras, and comes from anybody. Layers of nested
// models become layers of the model: "encoder/dense". `label` names the configuration in errors.
// Throws Error{invalid_file} for a configuration that no Keras writes: a missing layer or call, a cycle, a name used
// twice. Throws Error{unsupported} with the layer's name for what Holdfast does not have.
KerasFunctional read_keras_functional(const Json& config, const std::string& label);

}  // namespace holdfast::format
