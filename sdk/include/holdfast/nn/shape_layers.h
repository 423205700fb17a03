#pragma once

// Layers without weights that change the shape of a sample, with the names of Keras:
//
//   Sequential model{Input{784}, Reshape{{28, 28, 1}}, ZeroPadding2D{2}, Conv2D{6, 5}, UpSampling2D{2}};

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/nn/layer.h"

namespace holdfast {

class ConfigReader;

// An empty name lets the model choose one.
struct ShapeLayerOptions {
  std::string name = {};
};

// The same elements in row-major order; one extent may be -1 and is then computed. The axis of samples is not among the
// extents.
//
//   Reshape{{7, 7, -1}}  // [392] becomes [7, 7, 8]
class Reshape final : public LayerOf<Reshape> {
 public:
  // The extents of one sample. Those that do not fit are refused where the layer is called.
  explicit Reshape(std::vector<std::int64_t> extents, const ShapeLayerOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Reshape"; }
  std::optional<Activation> output_activation(std::optional<Activation> input) const override { return input; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::vector<std::int64_t> extents_;
};

// Axis i of the output is axis order[i] of the input, counted from 1 as in Keras.
//
//   Permute{{2, 1}}  // transposes: [3, 5] becomes [5, 3]
class Permute final : public LayerOf<Permute> {
 public:
  // Throws Error{invalid_argument} for an axis below 1. Others that do not fit are refused where the layer is
  // called.
  explicit Permute(std::vector<std::int64_t> order, const ShapeLayerOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Permute"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::vector<std::int64_t> order_;
};

// Repeats a row as the steps of a sequence: [features] becomes [count, features]. An input with other axes is refused
// where the layer is called.
//
//   RepeatVector{4}  // [8] becomes [4, 8]
class RepeatVector final : public LayerOf<RepeatVector> {
 public:
  // Throws Error{invalid_argument} unless the count is in [1, kMaximumExtent].
  explicit RepeatVector(std::int64_t count, const ShapeLayerOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "RepeatVector"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  std::int64_t count_;
};

// Rows or columns that are added or taken away at the sides of an image.
struct Margins2D {
  // The same number on all sides.
  Margins2D(std::int64_t all) : Margins2D(all, all) {}  // NOLINT(google-explicit-constructor): ZeroPadding2D{2}
  // A number above and below, and one on both other sides.
  Margins2D(std::int64_t vertical, std::int64_t horizontal)
      : top(vertical), bottom(vertical), left(horizontal), right(horizontal) {}
  // A number for each side.
  Margins2D(std::int64_t above, std::int64_t below, std::int64_t before, std::int64_t after)
      : top(above), bottom(below), left(before), right(after) {}

  std::int64_t top;     // rows above
  std::int64_t bottom;  // rows below
  std::int64_t left;    // columns before
  std::int64_t right;   // columns after
};

// Zeros around an image [height, width, channels], for a convolution that is to reach its border.
//
//   ZeroPadding2D{{1, 2}}  // [8, 8, 3] becomes [10, 12, 3]
class ZeroPadding2D final : public LayerOf<ZeroPadding2D> {
 public:
  // Throws Error{invalid_argument} unless the margins are in [0, kMaximumExtent].
  explicit ZeroPadding2D(const Margins2D& padding, const ShapeLayerOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "ZeroPadding2D"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Margins2D margins_;
};

// An image [height, width, channels] without its margins. An image that is not larger than they are is refused where
// the layer is called.
//
//   Cropping2D{2}  // [28, 28, 1] becomes [24, 24, 1]
class Cropping2D final : public LayerOf<Cropping2D> {
 public:
  // Throws Error{invalid_argument} unless the margins are in [0, kMaximumExtent].
  explicit Cropping2D(const Margins2D& cropping, const ShapeLayerOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Cropping2D"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Margins2D margins_;
};

// What the new pixels of an image are.
enum class Interpolation {
  nearest,   // the nearest pixel
  bilinear,  // weighted by distance from the centers of two pixels along each axis; beyond the outermost, its number
};

// The largest factor of UpSampling2D with Interpolation::bilinear, of which each place is an operation of its own.
inline constexpr std::int64_t kMostBilinearFactor = 4096;

// The default of Keras.
struct UpSampling2DOptions {
  Interpolation interpolation = Interpolation::nearest;  // what new pixels are
  std::string name = {};                                 // empty: the model chooses one
};

// Enlarges an image [height, width, channels] by whole factors (keras.layers.UpSampling2D). With the interpolation
// nearest, each row and column stands several times, next to each other. Factors of 2 make [28, 28, 8] of [14, 14, 8]:
//
//   const Value large = UpSampling2D{2, {.interpolation = Interpolation::bilinear}}(x);
class UpSampling2D final : public LayerOf<UpSampling2D> {
 public:
  // Throws Error{invalid_argument} unless the factors are in [1, kMaximumExtent], or in [1, kMostBilinearFactor] if
  // they interpolate.
  explicit UpSampling2D(Extent2D size, const UpSampling2DOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "UpSampling2D"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Extent2D size_;
  Interpolation interpolation_;
};

// input * scale + offset, without weights. It may be the first layer, so that a program which uses the model need not
// know how its inputs were scaled. Inputs of any type become f32, also those of an Input with DType::u8.
//
//   Rescaling{1.0F / 255}  // the bytes of a picture become numbers from 0 to 1
class Rescaling final : public LayerOf<Rescaling> {
 public:
  // Throws Error{invalid_argument} unless both are finite.
  explicit Rescaling(float scale, float offset = 0, const ShapeLayerOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  std::string_view kind() const override { return "Rescaling"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  float scale_;
  float offset_;
};

}  // namespace holdfast
