#pragma once

// The weights of a Holdfast savepoint as a PyTorch state dict, and back. With safetensors.h this makes a file for
// `model.load_state_dict(safetensors.torch.load_file(path))`. Each module has the name of its layer.
//
//   layer               array in Holdfast                  array in PyTorch
//   Dense               kernel [in, out]                   weight [out, in]
//   Conv1D to 3D        kernel [h, w, in, out]             weight [out, in, h, w]
//   Conv1DTranspose..   kernel [h, w, out, in]             weight [in, out, h, w]
//   DepthwiseConv1D, 2D kernel [h, w, c, m]                weight [c m, 1, h, w] (groups = c)
//   BatchNormalization  gamma, beta, moving_mean,          weight, bias, running_mean, running_var,
//                       moving_variance                    and num_batches_tracked = 0
//   LayerNormalization  gamma, beta                        weight, bias; GroupNormalization likewise
//   RMSNormalization    scale                              weight
//   PReLU               alpha [1, 1, channels]             weight [channels]; one slope: [1]
//   Embedding           embeddings [words, dim]            weight
//   LSTM                kernel [in, 4u],                   weight_ih_l0 [4u, in],
//                       recurrent_kernel [u, 4u],          weight_hh_l0 [4u, u],
//                       bias [4u]                          bias_ih_l0, and zeros as bias_hh_l0
//   GRU                 kernel [in, 3u],                   weight_ih_l0 [3u, in],
//                       recurrent_kernel [u, 3u],          weight_hh_l0 [3u, u], gates r, z, n instead of z, r, h,
//                       bias [2, 3u]                       bias_ih_l0 [3u], bias_hh_l0 [3u]
//
// The bias of Dense and of convolutions is `bias` on both sides. PyTorch's images are [channel, height, width]: inputs
// of a Dense or a normalization after a Flatten are reordered. Options that are not weights (epsilon, padding,
// batch_first) must be set where the PyTorch model is built. Graphs are taken too: a layer "encoder/dense" is the
// module "encoder.dense", and layers without weights have no arrays. A layer that would mix two orders of an image's
// elements is refused. A BatchNormalization with gamma or beta alone has ones or zeros for the other in PyTorch.
//
// The arrays of a module of LibTorch (holdfast/torch.h) have PyTorch's shapes, and become the module's state dict. Its
// num_batches_tracked is the number of steps.

#include "holdfast/format/array_set.h"

namespace holdfast::format {

// The arrays "model/LAYER/ENTRY" under the names "LAYER.ENTRY". The optimizer's state is left out. Throws
// Error{invalid_argument} for a savepoint without a graph of layers (docs/format.md) or whose arrays do not fit
// the graph, and Error{unsupported} for a layer that the table lacks.
ArraySet to_pytorch(const ArraySet& savepoint);

// The arrays "model/..." and the metadata of `like`, a savepoint of the same model, with the values of `state_dict`.
// The optimizer's state is left out. All names may begin with "module.", as those of a replicated PyTorch model do.
// Throws Error{incompatible}, with names, shapes and types, for an array that is missing, unknown or different, and as
// to_pytorch does for `like`.
ArraySet from_pytorch(const ArraySet& state_dict, const ArraySet& like);

}  // namespace holdfast::format
