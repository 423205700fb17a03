// Both layers are functions of one table, so that its gradient follows from them. The type of an input tells ids from
// vectors: a graph text needs no mark at the calls of a ReversibleEmbedding, and neither does a call of the layer.
// docs/decisions/models.md

#include "holdfast/nn/embedding.h"

#include <fmt/format.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/layer_builder.h"
#include "nn/graph/config.h"
#include "nn/layers/weight_limits.h"
#include "nn/operations/checks.h"

namespace holdfast {

Embedding::Embedding(std::int64_t vocabulary, std::int64_t width, const EmbeddingOptions& options)
    : LayerOf(options.name), vocabulary_(vocabulary), width_(width), options_(options) {
  check_extent("Embedding", "a vocabulary", vocabulary);
  check_extent("Embedding", "a width", width);
}

std::vector<Value> Embedding::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& ids = only_input(inputs);
  // Keras takes the fans of a table from its two axes, as for the kernel of Dense.
  const Fans fans = {.in = vocabulary_, .out = width_};
  const Value table = builder.parameter("embeddings", {vocabulary_, width_}, options_.initializer, fans);
  // Ids are checked where they are read, since only data has them: the kernels of gather() name a wrong one.
  return {gather(limited(builder, table, options_.embeddings_regularizer, options_.embeddings_constraint), ids)};
}

void Embedding::write_config(ConfigWriter& config) const {
  config.integer("vocabulary", vocabulary_);
  config.integer("width", width_);
  config.text("initializer", options_.initializer.name());
  write_limits(config, "embeddings", options_.embeddings_regularizer, options_.embeddings_constraint);
}

std::shared_ptr<const Layer> Embedding::from_config(const std::string& name, ConfigReader& config) {
  const std::int64_t vocabulary = config.integer("vocabulary");
  const std::int64_t width = config.integer("width");
  return std::make_shared<const Embedding>(
      vocabulary, width,
      EmbeddingOptions{.initializer = Initializer::from_name(config.text("initializer")),
                       .embeddings_regularizer = read_regularizer(config, "embeddings_regularizer"),
                       .embeddings_constraint = read_constraint(config, "embeddings_constraint"),
                       .name = name});
}

ReversibleEmbedding::ReversibleEmbedding(std::int64_t vocabulary, std::int64_t width,
                                         const ReversibleEmbeddingOptions& options)
    : LayerOf(options.name), vocabulary_(vocabulary), width_(width), options_(options) {
  check_extent("ReversibleEmbedding", "a vocabulary", vocabulary);
  check_extent("ReversibleEmbedding", "a width", width);
  // Scores are divided by the cap, so 0 and infinity would make NaN of them.
  const float cap = options.logit_soft_cap.value_or(1);
  if (std::isfinite(cap) && cap > 0) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("ReversibleEmbedding needs a finite logit_soft_cap above 0, not {}", cap));
}

// Vectors are f32 or bf16, and all other types are taken as those of ids.
static bool is_of_ids(const Value& value) {
  return value.dtype() != DType::f32 && value.dtype() != DType::bf16;
}

Value ReversibleEmbedding::operator()(const Value& ids) const {
  if (is_of_ids(ids)) return call({ids}).front();
  throw Error(ErrorCode::invalid_argument,
              fmt::format("ReversibleEmbedding needs ids that are integers, not {}; declare the input as one: "
                          "input(shape, {{.dtype = DType::i32}}), or call reverse() to compute scores",
                          holdfast::name(ids.dtype())));
}

Value ReversibleEmbedding::reverse(const Value& vectors) const {
  if (!is_of_ids(vectors)) return call({vectors}).front();
  throw Error(ErrorCode::invalid_argument,
              fmt::format("reverse() of a ReversibleEmbedding needs vectors of f32, not {}; call the layer itself for "
                          "ids",
                          holdfast::name(vectors.dtype())));
}

std::vector<Value> ReversibleEmbedding::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& x = only_input(inputs);
  const Value table = limited(
      builder,
      builder.parameter("embeddings", {vocabulary_, width_}, options_.initializer, {.in = vocabulary_, .out = width_}),
      options_.embeddings_regularizer, options_.embeddings_constraint);
  // Each call asks for all weights: build() must ask for the same ones. The regularizer and the constraint are those of
  // the table alone.
  const Value matrix = options_.tie_weights
                           ? permute(table, {1, 0})
                           : builder.parameter("reverse_embeddings", {width_, vocabulary_}, options_.initializer,
                                               {.in = width_, .out = vocabulary_});
  if (is_of_ids(x)) return {gather(table, x)};
  const Shape& shape = x.shape();
  if (shape.rank() == 0 || shape[shape.rank() - 1] != width_) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("it needs ids that are integers, or vectors [..., {}] of f32 to compute scores", width_));
  }
  const Value scores = matmul(x, matrix);
  // Without a cap nothing is computed: a cap that is very large would still round the scores.
  if (!options_.logit_soft_cap) return {scores};
  return {tanh(scores / *options_.logit_soft_cap) * *options_.logit_soft_cap};
}

void ReversibleEmbedding::write_config(ConfigWriter& config) const {
  config.integer("vocabulary", vocabulary_);
  config.integer("width", width_);
  config.boolean("tie_weights", options_.tie_weights);
  // A list of one number, since only a list may hold null, which stands for no cap.
  config.numbers("logit_soft_cap", {options_.logit_soft_cap});
  config.text("initializer", options_.initializer.name());
  write_limits(config, "embeddings", options_.embeddings_regularizer, options_.embeddings_constraint);
}

std::shared_ptr<const Layer> ReversibleEmbedding::from_config(const std::string& name, ConfigReader& config) {
  const std::int64_t vocabulary = config.integer("vocabulary");
  const std::int64_t width = config.integer("width");
  const std::vector<std::optional<float>> cap = config.numbers("logit_soft_cap");
  if (cap.size() != 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("\"logit_soft_cap\" needs one number, not {}", cap.size()));
  }
  return std::make_shared<const ReversibleEmbedding>(
      vocabulary, width,
      ReversibleEmbeddingOptions{.tie_weights = config.boolean("tie_weights"),
                                 .logit_soft_cap = cap.front(),
                                 .initializer = Initializer::from_name(config.text("initializer")),
                                 .embeddings_regularizer = read_regularizer(config, "embeddings_regularizer"),
                                 .embeddings_constraint = read_constraint(config, "embeddings_constraint"),
                                 .name = name});
}

}  // namespace holdfast
