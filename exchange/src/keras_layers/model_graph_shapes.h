#pragma once

// The shapes of the values in a model's graph, derived from the options of its layers.

#include <optional>
#include <span>
#include <vector>

#include "keras_layers/model_graph.h"

namespace holdfast::format {

// Empty where it is not known: after a layer of an application's own kind, or one whose options do not fit its input.
using MaybeShape = std::optional<SampleShape>;

// The shape of the first output of a layer that is called with inputs of these shapes. `is_reversed` is for a
// ReversibleEmbedding that leads from vectors to ids.
MaybeShape shape_after(const ModelGraphLayer& layer, std::span<const MaybeShape> inputs, bool is_reversed = false);

// How many outputs a layer has: states of recurrent layers are further ones.
std::size_t output_count(const ModelGraphLayer& layer);
// The shape of one of them, of which the first has the shape `first`.
MaybeShape shape_of_output(const ModelGraphLayer& layer, const MaybeShape& first, std::size_t index);

// Whether a layer hands on integers as integers.
bool keeps_integers(const ModelGraphLayer& layer);
// For each call, whether it is one of a ReversibleEmbedding that leads from vectors to ids: its input is not of
// integers.
std::vector<bool> reversed_calls(const ModelGraph& graph);

// The shape of the output of each call.
std::vector<MaybeShape> shapes_of_calls(const ModelGraph& graph);
// The shapes of the inputs of a call; `shapes` come from shapes_of_calls().
std::vector<MaybeShape> input_shapes(const ModelGraph& graph, const ModelGraphCall& call,
                                     std::span<const MaybeShape> shapes);

}  // namespace holdfast::format
