// The definitions are those of KerasHub, so that weights go both ways. Waves and angles stand still, and are buffers of
// the model; only the table of PositionEmbedding is trained.

#include "holdfast/nn/position_embedding.h"

#include <fmt/format.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/layers/positions/given_numbers.h"
#include "nn/layers/positions/rotation.h"
#include "nn/layers/weight_limits.h"
#include "nn/operations/checks.h"
#include "nn/operations/elements.h"

namespace holdfast {

namespace {

// Below 1, the waves would become shorter from column to column, and not longer.
void check_wavelength(std::string_view kind, float max_wavelength) {
  if (std::isfinite(max_wavelength) && max_wavelength >= 1) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} needs a finite max_wavelength of at least 1, not {}", kind, max_wavelength));
}

const Value& sequence_of(std::span<const Value> inputs) {
  // Steps are the last axis but one, as in KerasHub; those of RotaryEmbedding are the first, before the heads.
  const Value& x = only_input(inputs);
  if (x.shape().rank() >= 2) return x;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("it takes a sequence [steps, width], not {}", x.shape().to_string()));
}

// The same for each sample, in the shape of x.
Value for_each_sample(const Value& table, const Value& x) {
  return broadcast_to(table, {.shape = x.shape(), .dtype = DType::f32, .has_samples = true});
}

}  // namespace

PositionEmbedding::PositionEmbedding(std::int64_t sequence_length, const PositionEmbeddingOptions& options)
    : LayerOf(options.name), sequence_length_(sequence_length), options_(options) {
  check_extent("PositionEmbedding", "a sequence length", sequence_length);
}

std::vector<Value> PositionEmbedding::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& x = sequence_of(inputs);
  const std::int64_t steps = x.shape()[x.shape().rank() - 2];
  const std::int64_t width = x.shape()[x.shape().rank() - 1];
  // KerasHub puts longer sequences together from products of the table, which is not what anyone expects.
  if (steps > sequence_length_) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("it has vectors for {} steps, and its input has {}; give it a larger sequence length",
                            sequence_length_, steps));
  }
  const Value table = limited(builder,
                              builder.parameter("embeddings", {sequence_length_, width}, options_.initializer,
                                                {.in = sequence_length_, .out = width}),
                              options_.embeddings_regularizer, options_.embeddings_constraint);
  // A shorter sequence has the first rows, so that its positions have the vectors they were trained with.
  return {for_each_sample(steps == sequence_length_ ? table : slice(table, 0, 0, steps), x)};
}

void PositionEmbedding::write_config(ConfigWriter& config) const {
  config.integer("sequence_length", sequence_length_);
  config.text("initializer", options_.initializer.name());
  write_limits(config, "embeddings", options_.embeddings_regularizer, options_.embeddings_constraint);
}

std::shared_ptr<const Layer> PositionEmbedding::from_config(const std::string& name, ConfigReader& config) {
  const std::int64_t sequence_length = config.integer("sequence_length");
  return std::make_shared<const PositionEmbedding>(
      sequence_length,
      PositionEmbeddingOptions{.initializer = Initializer::from_name(config.text("initializer")),
                               .embeddings_regularizer = read_regularizer(config, "embeddings_regularizer"),
                               .embeddings_constraint = read_constraint(config, "embeddings_constraint"),
                               .name = name});
}

SinePositionEncoding::SinePositionEncoding(const SinePositionEncodingOptions& options)
    : LayerOf(options.name), max_wavelength_(options.max_wavelength) {
  check_wavelength("SinePositionEncoding", options.max_wavelength);
}

std::vector<Value> SinePositionEncoding::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& x = sequence_of(inputs);
  const std::int64_t width = x.shape()[x.shape().rank() - 1];
  // A function of step and column alone, so a longer sequence begins with the same numbers.
  const auto wave = [&](double step, std::int64_t column) {
    // Neighbouring columns have one wavelength, the second one a quarter of a wave later.
    const double exponent = static_cast<double>(column / 2 * 2) / static_cast<double>(width);
    // In double, since the angles of late steps are large: f32 would lose their place in the wave.
    const double angle = step / std::pow(static_cast<double>(max_wavelength_), exponent);
    return column % 2 == 0 ? std::sin(angle) : std::cos(angle);
  };
  return {for_each_sample(given_numbers(builder, "encoding", x.shape()[x.shape().rank() - 2], width, wave), x)};
}

void SinePositionEncoding::write_config(ConfigWriter& config) const {
  config.number("max_wavelength", max_wavelength_);
}

std::shared_ptr<const Layer> SinePositionEncoding::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const SinePositionEncoding>(
      SinePositionEncodingOptions{.max_wavelength = config.number("max_wavelength"), .name = name});
}

RotaryEmbedding::RotaryEmbedding(const RotaryEmbeddingOptions& options)
    : LayerOf(options.name), max_wavelength_(options.max_wavelength), scaling_factor_(options.scaling_factor) {
  check_rotation("RotaryEmbedding", options);
}

std::vector<Value> RotaryEmbedding::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& x = sequence_of(inputs);
  const std::int64_t width = x.shape()[x.shape().rank() - 1];
  // Without a prefix: the layer has no other arrays whose names the tables could meet.
  return {rotated(x, rotation_tables(builder, "", x.shape()[0], width,
                                     {.max_wavelength = max_wavelength_, .scaling_factor = scaling_factor_}))};
}

void RotaryEmbedding::write_config(ConfigWriter& config) const {
  config.number("max_wavelength", max_wavelength_);
  config.number("scaling_factor", scaling_factor_);
}

std::shared_ptr<const Layer> RotaryEmbedding::from_config(const std::string& name, ConfigReader& config) {
  const float max_wavelength = config.number("max_wavelength");
  return std::make_shared<const RotaryEmbedding>(RotaryEmbeddingOptions{
      .max_wavelength = max_wavelength, .scaling_factor = config.number("scaling_factor"), .name = name});
}

}  // namespace holdfast
