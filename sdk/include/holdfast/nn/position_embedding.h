#pragma once

// What tells a model where in a sequence a value stands, which attention alone does not see. The definitions are those
// of KerasHub (keras_hub.layers.PositionEmbedding, SinePositionEncoding and RotaryEmbedding, 0.2x).
//
//   const Value words = Embedding{20000, 64}(ids);                        // ids [steps]
//   const Value x = words + PositionEmbedding{1024}(words);               // trained, for up to 1024 steps
//   const Value y = words + SinePositionEncoding{}(words);                // given numbers
//   const Value q = RotaryEmbedding{}(queries);                           // [steps, heads, width]: rotated vectors

#include <cstdint>
#include <memory>
#include <string>

#include "holdfast/nn/constraint.h"
#include "holdfast/nn/initializer.h"
#include "holdfast/nn/layer.h"
#include "holdfast/nn/regularizer.h"

namespace holdfast {

class ConfigReader;

// The default of KerasHub.
struct PositionEmbeddingOptions {
  Initializer initializer = Initializer::glorot_uniform();  // of the table
  // A penalty on the size of the table, and bounds of it, none by default; see regularizer.h and constraint.h.
  Regularizer embeddings_regularizer = {};
  Constraint embeddings_constraint = {};
  std::string name = {};
};

// A trained vector for each step: x [..., steps, width] gives rows 0 to steps - 1 of a table, in the shape of x (Devlin
// et al., 2019). Only the shape of x is used. Parameter: embeddings, [sequence_length, width].
class PositionEmbedding final : public LayerOf<PositionEmbedding> {
 public:
  // Throws Error{invalid_argument} unless the length is in [1, Layer::kMaximumExtent]. A longer sequence is refused
  // where the layer is called.
  explicit PositionEmbedding(std::int64_t sequence_length, const PositionEmbeddingOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "PositionEmbedding"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::int64_t sequence_length_;
  PositionEmbeddingOptions options_;
};

// The default of the paper.
struct SinePositionEncodingOptions {
  float max_wavelength = 10000;  // of the slowest wave, divided by 2 pi
  std::string name = {};
};

// Waves for each step: x [..., steps, width] gives, in the shape of x,
//
//   [t, i] = sin(t / w^(2 (i / 2) / width)) for an even i, and the cosine of it for an odd one,
//
// where w is `max_wavelength` and i / 2 is a whole number (Vaswani et al., 2017, section 3.5). Only the shape of x is
// used. Buffer: encoding, [steps, width].
class SinePositionEncoding final : public LayerOf<SinePositionEncoding> {
 public:
  // Throws Error{invalid_argument} unless the wavelength is finite and at least 1.
  explicit SinePositionEncoding(const SinePositionEncodingOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "SinePositionEncoding"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  float max_wavelength_;
};

// The defaults of the paper.
struct RotaryEmbeddingOptions {
  float max_wavelength = 10000;  // as in SinePositionEncodingOptions
  float scaling_factor = 1;      // by which positions are divided, for sequences longer than those of the training
  std::string name = {};
};

// Vectors that are rotated by their position, so that the product of two depends on their distance alone (Su et al.,
// "RoFormer", 2021): x [steps, ..., width] gives, with the halves a and b of a vector at position t,
//
//   a' = a cos(t f) - b sin(t f),  b' = b cos(t f) + a sin(t f),  f[i] = 1 / w^(2 i / width),
//
// for queries and keys before their products. Buffers: cosine and sine, [steps, width / 2].
class RotaryEmbedding final : public LayerOf<RotaryEmbedding> {
 public:
  // Throws Error{invalid_argument} unless the wavelength is finite and at least 1, and the factor above 0. A width that
  // is odd is refused where the layer is called.
  explicit RotaryEmbedding(const RotaryEmbeddingOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "RotaryEmbedding"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  float max_wavelength_;
  float scaling_factor_;
};

}  // namespace holdfast
