#pragma once

// A row of a trained table for each integer (so keras.layers.Embedding): ids [...] give [..., width].
// Parameter: embeddings, [vocabulary, width].
//
//   const Value ids = input({128}, {.dtype = DType::i32, .name = "ids"});
//   const Value words = Embedding{20000, 64}(ids);   // [128, 64]
//
// ReversibleEmbedding has the way back, too: the scores of all ids of the table for each vector.
//
// An id outside of [0, vocabulary) ends training with Error{invalid_argument} that names the id, its sample
// and its position. On a device it makes NaN, which stops the step.

#include <memory>
#include <optional>
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

// What a table for both directions is made with.
struct ReversibleEmbeddingOptions {
  bool tie_weights = true;  // whether the way back has the transposed table, or else a matrix of its own
  // Above 0: scores are c tanh(score / c), between -c and c (Gemma 2, 2024). Empty: they are as they are.
  std::optional<float> logit_soft_cap = {};
  Initializer initializer = Initializer::random_uniform();  // of the table, and of the matrix
  // These two hold for the table, as in EmbeddingOptions.
  Regularizer embeddings_regularizer = {};
  Constraint embeddings_constraint = {};
  std::string name = {};
};

// An Embedding that also leads back from vectors to the ids (so keras.layers.ReversibleEmbedding; Press and Wolf,
// 2016): a language model has one table for what it reads and for what it predicts.
//
//   const ReversibleEmbedding words{20000, 64};
//   const Value x = words(ids);              // ids [128] of integers: [128, 64]
//   const Value logits = words.reverse(x);   // x [..., 64] of f32: [..., 20000], the products with all rows
//
// The table is one parameter: it is trained with the sum of the gradients of all calls, and saved once. Parameters:
// embeddings, [vocabulary, width], and without `tie_weights` reverse_embeddings, [width, vocabulary].
class ReversibleEmbedding final : public LayerOf<ReversibleEmbedding> {
 public:
  // Throws Error{invalid_argument} unless both are in [1, Layer::kMaximumExtent], and for a cap that is not above 0.
  ReversibleEmbedding(std::int64_t vocabulary, std::int64_t width, const ReversibleEmbeddingOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // The rows of the table. Throws Error{invalid_argument} for values that are not integers.
  Value operator()(const Value& ids) const;
  // The way back. Throws Error{invalid_argument} unless the last axis is the width, and the values are f32.
  Value reverse(const Value& vectors) const;

  std::string_view kind() const override { return "ReversibleEmbedding"; }
  // The type of the input decides the direction.
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;
  // Scores, also with a cap: no probabilities, so that a loss needs from_logits.
  std::optional<Activation> output_activation(std::optional<Activation>) const override { return Activation::linear; }

 private:
  std::int64_t vocabulary_;
  std::int64_t width_;
  ReversibleEmbeddingOptions options_;
};

}  // namespace holdfast
