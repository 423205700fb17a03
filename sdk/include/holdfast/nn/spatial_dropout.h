#pragma once

// Dropout of whole channels (Tompson et al., "Efficient Object Localization Using Convolutional Networks", CVPR 2015;
// so keras.layers.SpatialDropout1D, 2D and 3D): in training, each channel of each sample is zero at all positions with
// probability `rate`, and is multiplied by 1 / (1 - rate) otherwise. In inference nothing changes. A draw depends on
// seed, step, the place of the layer in the model, the sample's place in the global batch, and the channel.
//
//   Sequential model{Input{28, 28, 1}, Conv2D{16, 3}, SpatialDropout2D{0.2F}};
//
// Neighbours in a picture are much alike, so Dropout of single elements leaves what they say in place; this does not.
// Shapes stay as they are, and the layers have no weights. An input with another number of axes is refused when the
// layer is called.

#include <memory>
#include <string>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// An empty name lets the model choose one.
struct SpatialDropoutOptions {
  std::string name = {};
};

// What the layers below share. `kPositions` is the number of axes before that of the channels.
template <class Self>
class SpatialDropoutLayer : public LayerOf<Self> {
 public:
  // Throws Error{invalid_argument} unless 0 <= rate < 1.
  explicit SpatialDropoutLayer(float rate, const SpatialDropoutOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // Each does what Layer promises, with the members of Self.
  std::string_view kind() const override { return Self::kKind; }
  std::optional<Activation> output_activation(std::optional<Activation> input) const override { return input; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  float rate_;
};

// Takes sequences [steps, channels].
//
//   SpatialDropout1D{0.1F}  // each of 64 channels of [100, 64] stays or goes at all 100 steps
class SpatialDropout1D final : public SpatialDropoutLayer<SpatialDropout1D> {
 public:
  static constexpr std::string_view kKind = "SpatialDropout1D";
  static constexpr std::size_t kPositions = 1;  // spatial axes
  using SpatialDropoutLayer::SpatialDropoutLayer;
};

// Takes images [height, width, channels].
class SpatialDropout2D final : public SpatialDropoutLayer<SpatialDropout2D> {
 public:
  static constexpr std::string_view kKind = "SpatialDropout2D";
  static constexpr std::size_t kPositions = 2;  // spatial axes
  using SpatialDropoutLayer::SpatialDropoutLayer;
};

// Takes volumes [depth, height, width, channels].
class SpatialDropout3D final : public SpatialDropoutLayer<SpatialDropout3D> {
 public:
  static constexpr std::string_view kKind = "SpatialDropout3D";
  static constexpr std::size_t kPositions = 3;  // spatial axes
  using SpatialDropoutLayer::SpatialDropoutLayer;
};

}  // namespace holdfast
