#pragma once

// A row of a trained table for each integer (so keras.layers.Embedding): ids [...] give [..., width].
// Parameter: embeddings, [vocabulary, width].
//
//   const Value ids = input({128}, {.dtype = DType::i32, .name = "ids"});
//   const Value words = Embedding{20000, 64}(ids);   // [128, 64]
//
// An id outside of [0, vocabulary) ends training with Error{invalid_argument} that names the id, its sample
// and its position. On a device it makes NaN, which stops the step.

#include <memory>
#include <string>

#include "holdfast/nn/constraint.h"
#include "holdfast/nn/initializer.h"
#include "holdfast/nn/layer.h"
#include "holdfast/nn/regularizer.h"

namespace holdfast {

class ConfigReader;

// The default of Keras: uniform between -0.05 and 0.05.
struct EmbeddingOptions {
  Initializer initializer = Initializer::random_uniform();  // of the table
  // A penalty on the size of the table, and bounds of it, none by default; see regularizer.h and constraint.h. Both are
  // of the whole table, whichever ids a batch has.
  Regularizer embeddings_regularizer = {};
  Constraint embeddings_constraint = {};
  std::string name = {};
};

class Embedding final : public LayerOf<Embedding> {
 public:
  // Throws Error{invalid_argument} unless both are in [1, Layer::kMaximumExtent].
  Embedding(std::int64_t vocabulary, std::int64_t width, const EmbeddingOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Embedding"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::int64_t vocabulary_;
  std::int64_t width_;
  EmbeddingOptions options_;
};

}  // namespace holdfast
