#pragma once

// The weights of a Holdfast savepoint under the names and in the layouts of PyTorch, and back. Together with
// safetensors.h: a file that `model.load_state_dict(safetensors.torch.load_file(path))` takes.
//
// The model's graph in the savepoint's metadata (docs/format.md) says what kind of layer each array belongs to; a
// layer's module in PyTorch has the layer's name.
//
//   Dense              kernel [in, out]                   weight [out, in]
//   Conv2D             kernel [h, w, in, out]             weight [out, in, h, w]
//   DepthwiseConv2D    kernel [h, w, c, m]                weight [c m, 1, h, w]   (groups = c)
//   BatchNormalization gamma, beta, moving_mean,          weight, bias, running_mean, running_var,
//                      moving_variance                    and num_batches_tracked = 0
//   LayerNormalization gamma, beta                        weight, bias
//   Embedding          embeddings [words, dim]            weight
//   LSTM               kernel [in, 4u], recurrent_kernel  weight_ih_l0 [4u, in], weight_hh_l0 [4u, u]; the gates have
//   the
//                      [u, 4u], bias [4u]                 same order in both; bias_ih_l0, and zeros as bias_hh_l0
//   GRU                kernel [in, 3u], recurrent_kernel  weight_ih_l0 [3u, in], weight_hh_l0 [3u, u], bias_ih_l0 and
//                      [u, 3u], bias [2, 3u]              bias_hh_l0 [3u], gates r, z, n instead of z, r, h
//   bias of the first three                               bias
//
// PyTorch's images are [channel, height, width]. Where a Flatten lies between an image and a Dense (or a
// normalization), the inputs are put into that order. Options that are no weights, such as epsilon, "same" padding and
// PyTorch's `batch_first`, are the business of whoever builds the PyTorch model.

#include "holdfast/format/array_set.h"

namespace holdfast::format {

// The model's arrays ("model/LAYER/ENTRY") as a state dict with names "LAYER.ENTRY". The optimizer's state is left out.
// Throws Error{invalid_argument} for a savepoint without the graph of a Sequential, or whose arrays do not fit it, and
// Error{unsupported} for a kind of layer that is not in the table.
ArraySet to_pytorch(const ArraySet& savepoint);

// The way back: the arrays "model/..." of `like`, a savepoint of the same model, with the values of `state_dict`, and
// the metadata of `like`. The optimizer's state is left out. Names may begin with "module.", as those of a replicated
// PyTorch model do. Throws Error{incompatible} for a missing, an unknown or a differently shaped or typed array, with
// the names, what was expected and what was found, and as to_pytorch does for `like`.
ArraySet from_pytorch(const ArraySet& state_dict, const ArraySet& like);

}  // namespace holdfast::format
