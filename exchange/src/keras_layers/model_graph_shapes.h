#pragma once

// The shapes of the values in a model's graph, derived from the options of its layers.

#include <span>
#include <vector>

#include "keras_layers/layer_shapes.h"
#include "keras_layers/model_graph.h"

namespace holdfast::format {

// The shapes of all outputs of one call.
using OutputShapes = std::vector<MaybeShape>;

// Whether a layer hands on integers as integers.
bool keeps_integers(const ModelGraphLayer& layer);
// For each call, whether it is one of a ReversibleEmbedding that leads from vectors to ids: its input is not of
// integers.
std::vector<bool> reversed_calls(const ModelGraph& graph);

// The shapes of the outputs of each call.
std::vector<OutputShapes> shapes_of_calls(const ModelGraph& graph);
// The shapes of the inputs of a call; `shapes` come from shapes_of_calls().
std::vector<MaybeShape> input_shapes(const ModelGraph& graph, const ModelGraphCall& call,
                                     std::span<const OutputShapes> shapes);

}  // namespace holdfast::format
