#pragma once

// Each position of a sequence or a volume several times, next to each other (Keras: nearest). UpSampling2D, for images,
// is in shape_layers.h. The layers have no weights. The gradient of a position is the sum of those of its copies.
//
//   Sequential model{Input{8, 4}, UpSampling1D{2}};                    // [16, 4]
//   Sequential volume{Input{4, 8, 8, 1}, UpSampling3D{{1, 2, 2}}};     // [4, 16, 16, 1]

#include <cstdint>
#include <memory>

#include "holdfast/nn/shape_layers.h"

namespace holdfast {

// How often each position of a volume is repeated along its axes. A single number stands for all. The axis of channels
// stays as it is.
struct Factors3D {
  // The same number for all axes.
  Factors3D(std::int64_t all) : Factors3D(all, all, all) {}  // NOLINT(google-explicit-constructor): UpSampling3D{2}
  // A number for each axis.
  Factors3D(std::int64_t of_depth, std::int64_t of_height, std::int64_t of_width)
      : depth(of_depth), height(of_height), width(of_width) {}

  std::int64_t depth;   // of the first axis
  std::int64_t height;  // of the second axis
  std::int64_t width;   // of the third axis
};

// [steps, channels] becomes [steps * size, channels]: steps a, b become a, a, b, b with a size of 2.
class UpSampling1D final : public LayerOf<UpSampling1D> {
 public:
  // Throws Error{invalid_argument} unless the factor is in [1, kMaximumExtent].
  explicit UpSampling1D(std::int64_t size = 2, const ShapeLayerOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "UpSampling1D"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::int64_t size_;
};

// [depth, height, width, channels] becomes as much larger as the factors say.
class UpSampling3D final : public LayerOf<UpSampling3D> {
 public:
  // Throws Error{invalid_argument} unless the factors are in [1, kMaximumExtent].
  explicit UpSampling3D(const Factors3D& size = 2, const ShapeLayerOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "UpSampling3D"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Factors3D size_;
};

}  // namespace holdfast
