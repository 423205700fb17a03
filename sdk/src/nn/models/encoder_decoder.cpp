// Positions are waves, as in the paper, so that no parameter depends on a length. The padding is found in the ids
// themselves, since a mask as a third input could disagree with them. The target has none: its padding follows all
// words, and the causal mask hides it from them.

#include <fmt/format.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/embedding.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer_normalization.h"
#include "holdfast/nn/models.h"
#include "holdfast/nn/multi_head_attention.h"
#include "holdfast/nn/position_embedding.h"
#include "nn/layers/noise/noise.h"
#include "nn/models/model_options.h"
#include "nn/operations/checks.h"

namespace holdfast {
namespace {

// Ids up to here are exact as f32, in which the padding is compared.
constexpr std::int64_t kMostPaddedIds = std::int64_t{1} << 24;

void check_encoder_decoder(const EncoderDecoderOptions& options) {
  constexpr std::string_view kName = "encoder_decoder()";
  check_extent(kName, "a source_vocabulary", options.source_vocabulary);
  check_extent(kName, "a target_vocabulary", options.target_vocabulary);
  check_extent(kName, "a source_length", options.source_length);
  check_extent(kName, "a target_length", options.target_length);
  check_extent(kName, "a number of layers", options.layers);
  check_heads(kName, options.width, options.heads);
  if (options.feed_forward != 0) check_extent(kName, "a feed_forward", options.feed_forward);
  check_rate(kName, options.dropout);
  if (!options.padding_id) return;
  const bool is_id = *options.padding_id >= 0 && *options.padding_id < options.source_vocabulary;
  if (is_id && options.source_vocabulary <= kMostPaddedIds) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} needs a padding_id below its source_vocabulary, and that below 2^24, not {} and {}",
                          kName, *options.padding_id, options.source_vocabulary));
}

// The parts of both halves, each of which adds to what goes through.
class TransformerBlocks {
 public:
  explicit TransformerBlocks(const EncoderDecoderOptions& options) : options_(options) {}

  // As in the paper, the embedding is as large as the waves that are added to it.
  Value words(const Value& ids, std::int64_t vocabulary, const std::string& name) const {
    const Embedding table{
        vocabulary, options_.width, {.initializer = Initializer::normal(1 / root_of_width()), .name = name + "_words"}};
    const Value x = table(ids) * root_of_width();
    return dropped_out(x + SinePositionEncoding{{.name = name + "_positions"}}(x), options_.dropout, name + "_dropout");
  }

  Value self_attention(const Value& x, const std::optional<Value>& mask, bool is_causal,
                       const std::string& name) const {
    // The normalization comes first (Xiong et al., 2020). So x goes through all blocks by additions alone.
    const MultiHeadAttention attention = heads(name + ".attention", mask.has_value(), is_causal);
    const Value y = normalized(x, name + ".attention_norm");
    return x + dropped_out(mask ? attention(y, *mask) : attention(y), options_.dropout, name + ".attention_dropout");
  }

  Value source_attention(const Value& x, const Value& source, const std::optional<Value>& mask,
                         const std::string& name) const {
    const MultiHeadAttention attention = heads(name + ".source_attention", mask.has_value(), false);
    const Value y = normalized(x, name + ".source_attention_norm");
    return x + dropped_out(mask ? attention(y, source, *mask) : attention(y, source), options_.dropout,
                           name + ".source_attention_dropout");
  }

  Value feed_forward(const Value& x, const std::string& name) const {
    // The ratio of the paper: 2048 units for a width of 512.
    const std::int64_t units = options_.feed_forward == 0 ? 4 * options_.width : options_.feed_forward;
    const Dense wide{units, {.activation = Activation::relu, .name = name + ".wide"}};
    const Dense narrow{options_.width, {.name = name + ".narrow"}};
    return x +
           dropped_out(narrow(wide(normalized(x, name + ".wide_norm"))), options_.dropout, name + ".narrow_dropout");
  }

  Value normalized(const Value& x, const std::string& name) const {
    // PyTorch's layers of the paper have 1e-5, and Keras's normalization has 1e-3, which is the default of ours.
    return LayerNormalization{{.epsilon = 1e-5F, .name = name}}(x);
  }

 private:
  float root_of_width() const { return std::sqrt(static_cast<float>(options_.width)); }

  MultiHeadAttention heads(const std::string& name, bool takes_padding_mask, bool is_causal) const {
    return MultiHeadAttention{options_.heads,
                              options_.width / options_.heads,
                              {.dropout = options_.dropout,
                               .use_causal_mask = is_causal,
                               .takes_padding_mask = takes_padding_mask,
                               .name = name}};
  }

  const EncoderDecoderOptions& options_;
};

// 0 where an id is padding, else 1: whole numbers differ by at least 1.
std::optional<Value> mask_of_source(const Value& source, std::optional<std::int64_t> padding_id) {
  if (!padding_id) return std::nullopt;
  return minimum(absolute(cast(source, DType::f32) - static_cast<float>(*padding_id)), 1);
}

}  // namespace

Model encoder_decoder(const EncoderDecoderOptions& options) {
  check_encoder_decoder(options);
  const TransformerBlocks blocks(options);
  const Value source = input({options.source_length}, {.dtype = DType::i32, .name = "source"});
  const Value target = input({options.target_length}, {.dtype = DType::i32, .name = "target"});
  const std::optional<Value> mask = mask_of_source(source, options.padding_id);

  Value read = blocks.words(source, options.source_vocabulary, "source");
  for (std::int64_t block = 0; block < options.layers; ++block) {
    const std::string name = fmt::format("encoder.{}", block);
    read = blocks.feed_forward(blocks.self_attention(read, mask, false, name), name);
  }
  // Blocks normalize what they read, and not what they add up. So the sums are normalized here.
  read = blocks.normalized(read, "encoder_norm");

  Value written = blocks.words(target, options.target_vocabulary, "target");
  for (std::int64_t block = 0; block < options.layers; ++block) {
    const std::string name = fmt::format("decoder.{}", block);
    written = blocks.self_attention(written, std::nullopt, true, name);
    written = blocks.feed_forward(blocks.source_attention(written, read, mask, name), name);
  }
  const Dense scores{options.target_vocabulary, {.name = "scores"}};
  return Model({source, target}, {scores(blocks.normalized(written, "decoder_norm"))});
}

}  // namespace holdfast
