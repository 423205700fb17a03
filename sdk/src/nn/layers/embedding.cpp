#include "holdfast/nn/embedding.h"

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

}  // namespace holdfast
