#pragma once

// Models of language, ready to train: GPT-2, an LSTM, and an encoder-decoder with attention.
//
//   const Model model = gpt2({.vocabulary = 65, .positions = 128, .width = 192, .layers = 6, .heads = 6});
//   Trainer trainer(replica, model, AdamW{3e-4F}, SparseCategoricalCrossentropy{{.from_logits = true}});
//
// Ids go in as i32 [length] and scores come out as [length, vocabulary], the logits of what follows each position.
// With a large vocabulary, .positions_at_once = 512 of the loss saves most of the memory of a pass.
// Tokens::windows() (holdfast/data/tokens.h) and TextEncoder (holdfast/data/text.h) make such data. They are Models
// like any other: savepoints hold their layers, and their names and parameters are as written below. A model of another
// form is described with layers, as in sdk/src/nn/models/.
//
// All functions throw Error{invalid_argument} that names the option which cannot be met, and says what can.

#include <cstdint>
#include <optional>

#include "holdfast/nn/model.h"

namespace holdfast {

// The defaults are those of the smallest published model, 124,439,808 parameters. The others:
//
//             width  layers  heads    parameters
//   medium     1024      24     16    354,823,168
//   large      1280      36     20    774,030,080
//   XL         1600      48     25  1,557,611,200
struct Gpt2Options {
  std::int64_t vocabulary = 50257;  // ids are in [0, vocabulary)
  std::int64_t positions = 1024;    // rows of the table of positions, and so the longest sample
  std::int64_t length = 0;          // of a sample, at most `positions`; 0: as many
  std::int64_t width = 768;         // of a position, a multiple of `heads`
  std::int64_t layers = 12;         // blocks
  std::int64_t heads = 12;          // of attention, in each block
  float embedding_dropout = 0.1F;   // of the sum of both embeddings
  float attention_dropout = 0.1F;   // of the shares that attention gives to positions
  float residual_dropout = 0.1F;    // of what each half of a block adds
  bool tied_output = true;          // whether scores are products with the table of ids; else "lm_head" has a matrix
  bool recomputes = false;          // whether blocks are computed again for the backward pass, to save memory
};

// GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019): blocks with the normalization
// first, causal attention, and GELU by tanh. Input "ids". Layers are named as in the published weights: wte, wpe, drop,
// h.0.ln_1, h.0.attn, h.0.attn.resid_dropout, h.0.ln_2, h.0.mlp.c_fc, h.0.mlp.c_proj, h.0.mlp.dropout, ..., ln_f.
// Dropouts of rate 0 are left out.
//
// Weights begin with normal draws of deviation 0.02, and those of the two projections that end the halves of a block
// with 0.02 / sqrt(2 layers), as there. Attention has the kernels of query, key and value one by one, where c_attn of
// the published weights has them side by side.
Model gpt2(const Gpt2Options& options = {});

// The vocabulary and the length must be given.
struct LstmLanguageModelOptions {
  std::int64_t vocabulary = 0;  // ids are in [0, vocabulary)
  std::int64_t length = 0;      // of a sample
  std::int64_t width = 256;     // of the embedding of an id
  std::int64_t units = 512;     // of each LSTM
  std::int64_t layers = 2;      // LSTMs, one on top of the other
  float dropout = 0;            // of what goes into each LSTM and into the scores (Zaremba et al., 2014)
  bool tied_output = false;     // whether scores are products with the table of ids; then `units` must be `width`
};

// LSTMs over the embeddings of ids, with the scores of the next id at each position. The state begins with zeros in
// each sample. Input "ids", layers words, dropout.0, lstm.0, ..., scores.
Model lstm_language_model(const LstmLanguageModelOptions& options);

// The vocabularies and lengths must be given.
struct EncoderDecoderOptions {
  std::int64_t source_vocabulary = 0;  // ids of the source are in [0, source_vocabulary)
  std::int64_t target_vocabulary = 0;  // ids of the target likewise
  std::int64_t source_length = 0;      // of a sample
  std::int64_t target_length = 0;      // of a sample
  std::int64_t width = 256;            // of a position, a multiple of `heads`
  std::int64_t layers = 2;             // blocks of the encoder, and as many of the decoder
  std::int64_t heads = 4;              // of attention, in each block
  std::int64_t feed_forward = 0;       // units of the inner layer of a block; 0: four times the width
  float dropout = 0.1F;                // of the embeddings, of attention, and of what each part of a block adds
  // Ids of the source that are padding: no position attends to them. Padding of the target needs no mask, since it
  // follows all else: give its positions the weight 0, or ignore_class to the loss.
  std::optional<std::int64_t> padding_id = {};
};

// A transformer (Vaswani et al., "Attention Is All You Need", 2017) for translations and other pairs of sequences, with
// the normalization first in each part of a block (Xiong et al., 2020). Inputs "source" and "target"; the target has
// what was written so far, so training shifts it by one and begins it with an id of its own:
//
//   inputs source and [start, a, b, c], targets [a, b, c, end]
//
// The output has the scores of the next id at each position of the target. Layers are named source_words,
// encoder.0.attention, ..., target_words, decoder.0.attention, decoder.0.source_attention, ..., scores.
Model encoder_decoder(const EncoderDecoderOptions& options);

}  // namespace holdfast
