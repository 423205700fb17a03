#pragma once

// The configuration of a functional Keras model that computes what a model of Holdfast does.

#include <string>
#include <vector>

#include "keras_files/keras_json.h"
#include "keras_layers/model_graph.h"

namespace holdfast::format {

// Keras's names for the layers of the graph, in its order. They have no '/', so "encoder/dense" becomes
// "encoder.dense".
std::vector<std::string> keras_layer_names(const ModelGraph& graph);

// Returns {"module": ..., "class_name": "Functional", "config": ...}. Its layers are in the order that Keras gives them
// when it loads the model, because the groups of a weights file are numbered in that order. Throws Error{unsupported}
// for a layer that Keras does not have.
Json keras_functional_config(const ModelGraph& graph);

}  // namespace holdfast::format
