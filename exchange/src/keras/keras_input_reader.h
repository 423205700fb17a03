#pragma once

// An InputLayer of Keras as an input of Holdfast's models.

#include <string>

#include "keras_files/keras_json.h"
#include "keras_layers/model_graph.h"

namespace holdfast::format {

// `batch_shape` has the axis of samples, `options` are those of the InputLayer, or null. Throws Error{unsupported} for
// an input that no model of Holdfast has.
ModelGraphInput read_keras_input(const std::string& name, const Json& batch_shape, const Json& options);

}  // namespace holdfast::format
