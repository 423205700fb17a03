#include "holdfast/nn/spatial_dropout.h"

#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/layers/noise/noise.h"
#include "nn/operations/checks.h"

namespace holdfast {

template <class Self>
SpatialDropoutLayer<Self>::SpatialDropoutLayer(float rate, const SpatialDropoutOptions& options)
    : LayerOf<Self>(options.name), rate_(rate) {
  check_rate(Self::kKind, rate);
}

template <class Self>
std::vector<Value> SpatialDropoutLayer<Self>::build(LayerBuilder& builder, std::span<const Value> inputs) const {
  const Value& input = input_with_positions(inputs, Self::kPositions);
  if (!builder.is_training() || rate_ == 0) return {input};
  // The mask has one element for each channel. It takes its shape from one position, whichever that is, and is
  // broadcast over all others (Tompson et al., 2015).
  Value first_position = input;
  for (std::size_t axis = 0; axis < Self::kPositions; ++axis) {
    first_position = slice(first_position, static_cast<std::int64_t>(axis), 0, 1);
  }
  // A channel is kept or dropped as a whole: neighbours are so alike that a single element would not be missed.
  return {input * dropout_mask(builder, first_position, rate_)};
}

template <class Self>
void SpatialDropoutLayer<Self>::write_config(ConfigWriter& config) const {
  config.number("rate", rate_);
}

template <class Self>
std::shared_ptr<const Layer> SpatialDropoutLayer<Self>::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const Self>(config.number("rate"), SpatialDropoutOptions{.name = name});
}

// Only these three classes exist, so the template needs no header.
template class SpatialDropoutLayer<SpatialDropout1D>;
template class SpatialDropoutLayer<SpatialDropout2D>;
template class SpatialDropoutLayer<SpatialDropout3D>;

}  // namespace holdfast
