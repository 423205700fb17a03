#pragma once

// Recurrent layers and attentions in PyTorch: gates have another order there, some biases are there twice, and the
// projections of an attention are one array.

#include <cstdint>
#include <string_view>

#include "pytorch/pytorch_layers.h"

namespace holdfast::format {

// SimpleRNN, LSTM, GRU or Bidirectional.
bool is_recurrent(std::string_view kind);

// Moves the arrays of such a layer, and of a MultiHeadAttention or a GroupQueryAttention. `exchange` is null for a call
// of the layer after its first one, which moves nothing. Both return the width of an output of one direction. They
// throw as walk_layers() does, also for options that PyTorch's module does not have.
std::uint64_t move_recurrent(const GraphLayer& layer, LayerArrays& arrays, Exchange* exchange);
std::uint64_t move_attention(const GraphLayer& layer, LayerArrays& arrays, Exchange* exchange, PyTorchStyle style);

}  // namespace holdfast::format
