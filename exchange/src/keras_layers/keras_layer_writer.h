#pragma once

// The Keras layer, or function of keras.ops, that computes what a layer of Holdfast does.

#include <span>
#include <string>

#include "keras_files/keras_json.h"
#include "keras_layers/model_graph_shapes.h"

namespace holdfast::format {

// An object as Keras serialises it.
Json keras_object(const std::string& module, const std::string& class_name, Json config);

struct KerasObject {
  Json object;
  // What it is called with: one list of values, or the values and numbers of an operation. Null stands for the next
  // value, and {"input": 0} for the first one once more.
  Json arguments;
  Json named_arguments = Json::object();  // likewise
};

// `name` is the layer's name in Keras, `inputs` are the shapes of the values that it is called with. Throws
// Error{unsupported} with the layer's own name for a kind or an option that Keras does not have.
KerasObject keras_layer_object(const ModelGraphLayer& layer, const std::string& name,
                               std::span<const MaybeShape> inputs);

}  // namespace holdfast::format
