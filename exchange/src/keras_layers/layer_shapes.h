#pragma once

// The shapes of what a layer gives, derived from its options and the shapes of what it takes.

#include <cstddef>
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
// Those of all outputs.
std::vector<MaybeShape> shapes_after(const ModelGraphLayer& layer, std::span<const MaybeShape> inputs,
                                     bool is_reversed = false);

// How many outputs a layer has: states of recurrent layers and shares of attentions are further ones.
std::size_t output_count(const ModelGraphLayer& layer);

}  // namespace holdfast::format
