#pragma once

// Zeros around sequences [steps, channels] and volumes [depth, height, width, channels], and the removal of their
// margins, with the names of Keras. Those of images are in shape_layers.h:
//
//   Sequential model{Input{100, 8}, ZeroPadding1D{{3, 0}}, Dense{8}, Cropping1D{{0, 2}}};
//   Sequential volume{Input{16, 16, 16, 1}, ZeroPadding3D{{1, {0, 1}, 0}}};

#include <cstdint>
#include <memory>

#include "holdfast/nn/shape_layers.h"

namespace holdfast {

// What is added or taken away before and after the elements of an axis. A single number stands for both.
struct Margins1D {
  // The same number on both sides.
  Margins1D(std::int64_t both) : Margins1D(both, both) {}  // NOLINT(google-explicit-constructor): ZeroPadding1D{2}
  // A number for each side.
  Margins1D(std::int64_t first, std::int64_t last) : before(first), after(last) {}

  std::int64_t before;  // the first element
  std::int64_t after;   // the last element
};

// The same for the three axes of a volume. A single number stands for all six sides.
struct Margins3D {
  // The same number on all sides.
  Margins3D(std::int64_t all) : Margins3D(all, all, all) {}  // NOLINT(google-explicit-constructor): ZeroPadding3D{2}
  // Two numbers for each axis.
  Margins3D(Margins1D of_depth, Margins1D of_height, Margins1D of_width)
      : depth(of_depth), height(of_height), width(of_width) {}

  Margins1D depth;   // of the first axis
  Margins1D height;  // of the second axis
  Margins1D width;   // of the third axis
};

// Zeros before and after a sequence: [steps, channels] becomes [before + steps + after, channels].
//
//   ZeroPadding1D{{3, 0}}  // [100, 8] becomes [103, 8]; then no output of a Conv1D{16, 4} sees a later step
class ZeroPadding1D final : public LayerOf<ZeroPadding1D> {
 public:
  // Throws Error{invalid_argument} unless the margins are in [0, kMaximumExtent].
  explicit ZeroPadding1D(const Margins1D& padding = 1, const ShapeLayerOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "ZeroPadding1D"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Margins1D margins_;
};

// Zeros around a volume [depth, height, width, channels].
class ZeroPadding3D final : public LayerOf<ZeroPadding3D> {
 public:
  // Throws Error{invalid_argument} unless the margins are in [0, kMaximumExtent].
  explicit ZeroPadding3D(const Margins3D& padding = 1, const ShapeLayerOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "ZeroPadding3D"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Margins3D margins_;
};

// A sequence [steps, channels] without its margins, which must leave a step at least. Others are refused when the layer
// is called.
//
//   Cropping1D{{0, 2}}  // [100, 8] becomes [98, 8]
class Cropping1D final : public LayerOf<Cropping1D> {
 public:
  // Throws Error{invalid_argument} unless the margins are in [0, kMaximumExtent].
  explicit Cropping1D(const Margins1D& cropping = 1, const ShapeLayerOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "Cropping1D"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Margins1D margins_;
};

// A volume [depth, height, width, channels] without its margins, which must leave something of each axis.
class Cropping3D final : public LayerOf<Cropping3D> {
 public:
  // Throws Error{invalid_argument} unless the margins are in [0, kMaximumExtent].
  explicit Cropping3D(const Margins3D& cropping = 1, const ShapeLayerOptions& options = {});
  // For Holdfast's own use: the layer that write_config() described.
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader& config);

  // What Layer promises.
  std::string_view kind() const override { return "Cropping3D"; }
  std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override;
  void write_config(ConfigWriter& config) const override;

 private:
  Margins3D margins_;
};

}  // namespace holdfast
