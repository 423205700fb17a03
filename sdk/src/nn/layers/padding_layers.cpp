// Layers of one to three axes differ in the number of their margins alone: the functions below take a list of margins,
// that of the first axis of a sample first. The layers of two axes have margins of another type, and are in
// shape_layers.cpp.

#include "holdfast/nn/padding_layers.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/operations/checks.h"

namespace holdfast {

namespace {

// Margins before and after each axis of positions.
using MarginList = std::vector<Margins1D>;

MarginList margin_list(const Margins1D& margins) {
  return {margins};
}

MarginList margin_list(const Margins3D& margins) {
  return {margins.depth, margins.height, margins.width};
}

void check_margin_list(std::string_view kind, const MarginList& list) {
  for (const Margins1D& margins : list) {
    // The bound keeps sums of margins and extents far from an overflow.
    for (const std::int64_t margin : {margins.before, margins.after}) {
      if (margin >= 0 && margin <= Layer::kMaximumExtent) continue;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} needs margins from 0 to {}, not {}", kind, Layer::kMaximumExtent, margin));
    }
  }
}

// input_with_positions() refuses an input of another rank, so each axis of positions has its margins.
Value with_zeros(std::span<const Value> inputs, const MarginList& list) {
  // Axes are padded one after another. The result does not depend on their order, since all margins are zeros.
  Value result = input_with_positions(inputs, list.size());
  for (std::size_t axis = 0; axis < list.size(); ++axis) {
    result = pad(result, static_cast<std::int64_t>(axis), list[axis].before, list[axis].after);
  }
  return result;
}

Value without_margins(std::span<const Value> inputs, const MarginList& list) {
  // Channels, the last axis, have no margins.
  Value result = input_with_positions(inputs, list.size());
  for (std::size_t axis = 0; axis < list.size(); ++axis) {
    // The extent of this axis is not changed by the slices before it, which were along other axes.
    const std::int64_t extent = result.shape()[axis];
    // A value without elements is not possible, so something must be left.
    const auto& [before, after] = list[axis];
    if (before + after >= extent) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("its margins {} and {} leave nothing of the {} elements of axis {}; crop less", before,
                              after, extent, axis));
    }
    result = slice(result, static_cast<std::int64_t>(axis), before, extent - after);
  }
  return result;
}

void write_margin_list(ConfigWriter& config, std::string_view key, const MarginList& list) {
  // Margins are one flat list, before and after in turn.
  std::vector<std::int64_t> integers;
  for (const Margins1D& margins : list) integers.insert(integers.end(), {margins.before, margins.after});
  config.integers(key, integers);
}

// Constructors check the margins themselves. Only their number must be right before they are taken out of the list.
std::vector<std::int64_t> read_margin_list(ConfigReader& config, std::string_view key, std::size_t count) {
  std::vector<std::int64_t> integers = config.integers(key);
  if (integers.size() == count) return integers;
  throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" needs {} margins, not {}", key, count, integers.size()));
}

Margins1D read_margins1d(ConfigReader& config, std::string_view key) {
  const std::vector<std::int64_t> m = read_margin_list(config, key, 2);
  return {m[0], m[1]};
}

Margins3D read_margins3d(ConfigReader& config, std::string_view key) {
  // Depth comes first, then height and width, each with its margins before and after.
  const std::vector<std::int64_t> m = read_margin_list(config, key, 6);
  return {{m[0], m[1]}, {m[2], m[3]}, {m[4], m[5]}};
}

}  // namespace

ZeroPadding1D::ZeroPadding1D(const Margins1D& padding, const ShapeLayerOptions& options)
    : LayerOf(options.name), margins_(padding) {
  check_margin_list("ZeroPadding1D", margin_list(padding));
}

std::vector<Value> ZeroPadding1D::build(LayerBuilder&, std::span<const Value> inputs) const {
  return {with_zeros(inputs, margin_list(margins_))};
}

void ZeroPadding1D::write_config(ConfigWriter& config) const {
  write_margin_list(config, "padding", margin_list(margins_));
}

std::shared_ptr<const Layer> ZeroPadding1D::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const ZeroPadding1D>(read_margins1d(config, "padding"), ShapeLayerOptions{.name = name});
}

ZeroPadding3D::ZeroPadding3D(const Margins3D& padding, const ShapeLayerOptions& options)
    : LayerOf(options.name), margins_(padding) {
  check_margin_list("ZeroPadding3D", margin_list(padding));
}

std::vector<Value> ZeroPadding3D::build(LayerBuilder&, std::span<const Value> inputs) const {
  return {with_zeros(inputs, margin_list(margins_))};
}

void ZeroPadding3D::write_config(ConfigWriter& config) const {
  write_margin_list(config, "padding", margin_list(margins_));
}

std::shared_ptr<const Layer> ZeroPadding3D::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const ZeroPadding3D>(read_margins3d(config, "padding"), ShapeLayerOptions{.name = name});
}

Cropping1D::Cropping1D(const Margins1D& cropping, const ShapeLayerOptions& options)
    : LayerOf(options.name), margins_(cropping) {
  check_margin_list("Cropping1D", margin_list(cropping));
}

std::vector<Value> Cropping1D::build(LayerBuilder&, std::span<const Value> inputs) const {
  return {without_margins(inputs, margin_list(margins_))};
}

void Cropping1D::write_config(ConfigWriter& config) const {
  write_margin_list(config, "cropping", margin_list(margins_));
}

std::shared_ptr<const Layer> Cropping1D::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const Cropping1D>(read_margins1d(config, "cropping"), ShapeLayerOptions{.name = name});
}

Cropping3D::Cropping3D(const Margins3D& cropping, const ShapeLayerOptions& options)
    : LayerOf(options.name), margins_(cropping) {
  check_margin_list("Cropping3D", margin_list(cropping));
}

std::vector<Value> Cropping3D::build(LayerBuilder&, std::span<const Value> inputs) const {
  return {without_margins(inputs, margin_list(margins_))};
}

void Cropping3D::write_config(ConfigWriter& config) const {
  write_margin_list(config, "cropping", margin_list(margins_));
}

std::shared_ptr<const Layer> Cropping3D::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const Cropping3D>(read_margins3d(config, "cropping"), ShapeLayerOptions{.name = name});
}

}  // namespace holdfast
