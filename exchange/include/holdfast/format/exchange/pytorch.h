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
//   Embedding           embeddings [words, dim]            weight; a ReversibleEmbedding with tied weights likewise
//   PositionEmbedding   embeddings [steps, dim]            weight
//   SimpleRNN, LSTM     kernel [in, g u],                  weight_ih_l0 [g u, in],
//                       recurrent_kernel [u, g u],         weight_hh_l0 [g u, u], with g = 1 or 4 gates
//                       bias [g u]                         bias_ih_l0, and zeros as bias_hh_l0; back: their sum
//   GRU                 kernel [in, 3u],                   weight_ih_l0 [3u, in],
//                       recurrent_kernel [u, 3u],          weight_hh_l0 [3u, u], gates r, z, n instead of z, r, h,
//                       bias [2, 3u]                       bias_ih_l0 [3u], bias_hh_l0 [3u]
//   Bidirectional       forward_layer, backward_layer      the same, and the same with the end _reverse
//   two of these, named rnn_l0 and rnn_l1                  the module "rnn" with num_layers = 2: weight_ih_l1 and so on
//   MultiHeadAttention  query_dense, key_dense and         in_proj_weight [3 width, width], in_proj_bias;
//                       value_dense [width, heads, dim],   for keys of another width q_proj_weight, k_proj_weight and
//                       output_dense [heads, dim, width]   v_proj_weight; out_proj.weight, out_proj.bias
//   GroupQueryAttention the same                           q_proj.weight, k_proj.weight, v_proj.weight, o_proj.weight
//
// The bias of Dense and of convolutions is `bias` on both sides, and a layer "encoder/dense" is the module
// "encoder.dense". PyTorch's images are [channel, height, width]: inputs of a Dense or a normalization after a Flatten
// are reordered. Options that are not weights (epsilon, padding, batch_first) must be set where the PyTorch model is
// built. Which layers are refused, GPT-2 of Hugging Face and modules of LibTorch: docs/commands.md.

#include "holdfast/format/array_set.h"

namespace holdfast::format {

// Whose modules a state dict is for.
enum class PyTorchStyle {
  modules,  // those of torch.nn
  gpt2,     // those of transformers.GPT2Model: kernels as in Holdfast, attentions packed as c_attn and c_proj
};

// The arrays "model/LAYER/ENTRY" under the names "LAYER.ENTRY". The optimizer's state is left out. Throws
// Error{invalid_argument} for a savepoint without a graph of layers (docs/format.md) or whose arrays do not fit
// the graph, and Error{unsupported} for a layer that the table lacks.
ArraySet to_pytorch(const ArraySet& savepoint, PyTorchStyle style = PyTorchStyle::modules);

// The arrays "model/..." and the metadata of `like`, a savepoint of the same model, with the values of `state_dict`.
// The optimizer's state is left out. All names may begin with "module.", as those of a replicated PyTorch model do.
// A state dict with a "c_attn.weight" is one of GPT-2: its names may begin with "transformer.", and its masks
// ("attn.bias" with four axes, "attn.masked_bias") are passed over, since they follow from the layer. Throws
// Error{incompatible}, with names, shapes and types, for an array that is missing, unknown or different, and as
// to_pytorch does for `like`.
ArraySet from_pytorch(const ArraySet& state_dict, const ArraySet& like);

}  // namespace holdfast::format
