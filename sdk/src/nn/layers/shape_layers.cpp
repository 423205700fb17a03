// Each layer is a few functions of values, whose gradients come with them. Options are checked when a layer is made,
// and shapes when it is called. docs/decisions/models.md

#include "holdfast/nn/shape_layers.h"

#include <fmt/format.h>

#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/operations/checks.h"

namespace holdfast {

Reshape::Reshape(std::vector<std::int64_t> extents, const ShapeLayerOptions& options)
    : LayerOf(options.name), extents_(std::move(extents)) {}

std::vector<Value> Reshape::build(LayerBuilder&, std::span<const Value> inputs) const {
  // The extents may have a -1, so they are kept as they were given, and completed for each input.
  return {reshape(only_input(inputs), extents_)};
}

void Reshape::write_config(ConfigWriter& config) const {
  config.integers("target_shape", extents_);
}

std::shared_ptr<const Layer> Reshape::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const Reshape>(config.integers("target_shape"), ShapeLayerOptions{.name = name});
}

Permute::Permute(std::vector<std::int64_t> order, const ShapeLayerOptions& options)
    : LayerOf(options.name), order_(std::move(order)) {
  for (const std::int64_t axis : order_) {
    // Keras counts from 1 here, since its axis 0 is that of the samples.
    if (axis >= 1) continue;
    throw Error(ErrorCode::invalid_argument, fmt::format("Permute counts axes from 1, so there is no axis {}", axis));
  }
}

std::vector<Value> Permute::build(LayerBuilder&, std::span<const Value> inputs) const {
  AxisList order;
  // Functions of values count the axes of a sample from 0.
  for (const std::int64_t axis : order_) order.push_back(axis - 1);
  return {permute(only_input(inputs), order)};
}

void Permute::write_config(ConfigWriter& config) const {
  config.integers("dims", order_);
}

std::shared_ptr<const Layer> Permute::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const Permute>(config.integers("dims"), ShapeLayerOptions{.name = name});
}

RepeatVector::RepeatVector(std::int64_t count, const ShapeLayerOptions& options)
    : LayerOf(options.name), count_(count) {
  check_extent("RepeatVector", "a count", count);
}

std::vector<Value> RepeatVector::build(LayerBuilder&, std::span<const Value> inputs) const {
  const Value& input = only_input(inputs);
  if (input.shape().rank() != 1) {
    throw Error(ErrorCode::invalid_argument, "it needs an input [features]; a Flatten layer before it makes one");
  }
  // The vector is aligned at the last axis, so it is repeated along the first one.
  return {broadcast(input, {count_, input.shape()[0]})};
}

void RepeatVector::write_config(ConfigWriter& config) const {
  config.integer("n", count_);
}

std::shared_ptr<const Layer> RepeatVector::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const RepeatVector>(config.integer("n"), ShapeLayerOptions{.name = name});
}

// The bound keeps sums of margins and extents far from an overflow.
static void check_margins(std::string_view kind, const Margins2D& margins) {
  for (const std::int64_t margin : {margins.top, margins.bottom, margins.left, margins.right}) {
    if (margin >= 0 && margin <= Layer::kMaximumExtent) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} needs margins from 0 to {}, not {}", kind, Layer::kMaximumExtent, margin));
  }
}

static const Value& only_image(std::span<const Value> inputs) {
  const Value& input = only_input(inputs);
  check_spatial_axes(input.shape(), 2);
  return input;
}

// Four numbers in one list, in the order of the struct's members.
static void write_margins(ConfigWriter& config, std::string_view key, const Margins2D& margins) {
  config.integers(key, {margins.top, margins.bottom, margins.left, margins.right});
}

static Margins2D read_margins(ConfigReader& config, std::string_view key) {
  const std::vector<std::int64_t> margins = config.integers(key);
  if (margins.size() == 4) return {margins[0], margins[1], margins[2], margins[3]};
  throw Error(ErrorCode::invalid_argument, fmt::format("\"{}\" needs four margins, not {}", key, margins.size()));
}

ZeroPadding2D::ZeroPadding2D(const Margins2D& padding, const ShapeLayerOptions& options)
    : LayerOf(options.name), margins_(padding) {
  check_margins("ZeroPadding2D", padding);
}

std::vector<Value> ZeroPadding2D::build(LayerBuilder&, std::span<const Value> inputs) const {
  // The margins of rows and columns are independent, so two paddings along one axis each are enough.
  const Value rows = pad(only_image(inputs), 0, margins_.top, margins_.bottom);
  return {pad(rows, 1, margins_.left, margins_.right)};
}

void ZeroPadding2D::write_config(ConfigWriter& config) const {
  write_margins(config, "padding", margins_);
}

std::shared_ptr<const Layer> ZeroPadding2D::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const ZeroPadding2D>(read_margins(config, "padding"), ShapeLayerOptions{.name = name});
}

Cropping2D::Cropping2D(const Margins2D& cropping, const ShapeLayerOptions& options)
    : LayerOf(options.name), margins_(cropping) {
  check_margins("Cropping2D", cropping);
}

std::vector<Value> Cropping2D::build(LayerBuilder&, std::span<const Value> inputs) const {
  const Value& image = only_image(inputs);
  const std::int64_t height = image.shape()[0];
  const std::int64_t width = image.shape()[1];
  // slice() would refuse it too, but its sentence knows nothing of margins.
  if (margins_.top + margins_.bottom >= height || margins_.left + margins_.right >= width) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("its margins of {} + {} rows and {} + {} columns leave nothing of {} x {}; take smaller "
                            "ones",
                            margins_.top, margins_.bottom, margins_.left, margins_.right, height, width));
  }
  const Value rows = slice(image, 0, margins_.top, height - margins_.bottom);
  return {slice(rows, 1, margins_.left, width - margins_.right)};
}

void Cropping2D::write_config(ConfigWriter& config) const {
  write_margins(config, "cropping", margins_);
}

std::shared_ptr<const Layer> Cropping2D::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const Cropping2D>(read_margins(config, "cropping"), ShapeLayerOptions{.name = name});
}

Rescaling::Rescaling(float scale, float offset, const ShapeLayerOptions& options)
    : LayerOf(options.name), scale_(scale), offset_(offset) {
  // A NaN or an infinity would reach each output.
  if (std::isfinite(scale) && std::isfinite(offset)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("Rescaling needs a finite scale and offset, not {} and {}", scale, offset));
}

std::vector<Value> Rescaling::build(LayerBuilder&, std::span<const Value> inputs) const {
  // Images often come as u8, and this layer is where they become floats.
  return {cast(only_input(inputs), DType::f32) * scale_ + offset_};
}

void Rescaling::write_config(ConfigWriter& config) const {
  config.number("scale", scale_);
  config.number("offset", offset_);
}

std::shared_ptr<const Layer> Rescaling::from_config(const std::string& name, ConfigReader& config) {
  // The scale is read in a statement of its own, since the order of arguments is not fixed: the error for a damaged
  // file names the same member each time.
  const float scale = config.number("scale");
  return std::make_shared<const Rescaling>(scale, config.number("offset"), ShapeLayerOptions{.name = name});
}

}  // namespace holdfast
