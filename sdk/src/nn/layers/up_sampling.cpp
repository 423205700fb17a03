// New pixels are copies and weighted sums of parts of the value. So devices need no kernels for them, and gradients
// follow from the parts. docs/decisions/models.md

#include "holdfast/nn/up_sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/operations/checks.h"

namespace holdfast {

UpSampling1D::UpSampling1D(std::int64_t size, const ShapeLayerOptions& options) : LayerOf(options.name), size_(size) {
  check_extent("UpSampling1D", "a factor", size);
}

std::vector<Value> UpSampling1D::build(LayerBuilder&, std::span<const Value> inputs) const {
  return {repeat(input_with_positions(inputs, 1), 0, size_)};
}

void UpSampling1D::write_config(ConfigWriter& config) const {
  config.integer("size", size_);
}

std::shared_ptr<const Layer> UpSampling1D::from_config(const std::string& name, ConfigReader& config) {
  return std::make_shared<const UpSampling1D>(config.integer("size"), ShapeLayerOptions{.name = name});
}

UpSampling2D::UpSampling2D(Extent2D size, const UpSampling2DOptions& options)
    : LayerOf(options.name), size_(size), interpolation_(options.interpolation) {
  check_extent("UpSampling2D", "factors", size);
  if (interpolation_ != Interpolation::bilinear || std::max(size.height, size.width) <= kMostBilinearFactor) return;
  // Each place of a factor is an operation of its own, and the factor may come from a file.
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("UpSampling2D was given the factors {} and {}; with Interpolation::bilinear they are at most {}",
                  size.height, size.width, kMostBilinearFactor));
}

// The center of new pixel p lies at (p + 1/2) / factor - 1/2 among the old pixels (so keras.ops.image.resize). So it
// has shares of its old pixel and of the neighbour on its side, which depend on p modulo the factor alone.
static Value interpolated(const Value& x, std::int64_t axis, std::int64_t factor) {
  if (factor == 1) return x;
  const std::int64_t extent = x.shape()[static_cast<std::size_t>(axis)];
  // Beyond the ends the outermost pixel goes on.
  const Value first = slice(x, axis, 0, 1);
  const Value last = slice(x, axis, extent - 1, extent);
  const Value before = extent == 1 ? x : concatenate({first, slice(x, axis, 0, extent - 1)}, axis);
  const Value after = extent == 1 ? x : concatenate({slice(x, axis, 1, extent), last}, axis);
  // The pixels of a place modulo the factor are one part. Parts lie along a new axis, and the reshape interleaves them.
  std::vector<std::int64_t> with_places = x.shape().extents();
  with_places.insert(with_places.begin() + axis + 1, 1);
  std::vector<Value> parts;
  for (std::int64_t place = 0; place < factor; ++place) {
    const float distance = (static_cast<float>(place) + 0.5F) / static_cast<float>(factor) - 0.5F;
    const float share = std::abs(distance);
    const Value part = share == 0 ? x : x * (1 - share) + (distance < 0 ? before : after) * share;
    parts.push_back(reshape(part, with_places));
  }
  // Refuses a shape that 63 bits cannot count, before the product below could overflow.
  const Value joined = concatenate(parts, axis + 1);
  std::vector<std::int64_t> extents = x.shape().extents();
  extents[static_cast<std::size_t>(axis)] *= factor;
  return reshape(joined, extents);
}

std::vector<Value> UpSampling2D::build(LayerBuilder&, std::span<const Value> inputs) const {
  const Value& image = input_with_positions(inputs, 2);
  if (interpolation_ == Interpolation::bilinear) {
    return {interpolated(interpolated(image, 0, size_.height), 1, size_.width)};
  }
  return {repeat(repeat(image, 0, size_.height), 1, size_.width)};
}

void UpSampling2D::write_config(ConfigWriter& config) const {
  config.extent("size", size_);
  // Texts of the nearest pixels are those of before there was a choice.
  if (interpolation_ == Interpolation::bilinear) config.text("interpolation", "bilinear");
}

std::shared_ptr<const Layer> UpSampling2D::from_config(const std::string& name, ConfigReader& config) {
  UpSampling2DOptions options = {.name = name};
  if (config.has("interpolation")) {
    const std::string text = config.text("interpolation");
    if (text != "bilinear" && text != "nearest") {
      throw Error(ErrorCode::invalid_argument, "\"interpolation\" of a file is \"nearest\" or \"bilinear\"");
    }
    if (text == "bilinear") options.interpolation = Interpolation::bilinear;
  }
  return std::make_shared<const UpSampling2D>(config.extent("size"), options);
}

UpSampling3D::UpSampling3D(const Factors3D& size, const ShapeLayerOptions& options)
    : LayerOf(options.name), size_(size) {
  for (const std::int64_t factor : {size.depth, size.height, size.width}) {
    check_extent("UpSampling3D", "factors", factor);
  }
}

std::vector<Value> UpSampling3D::build(LayerBuilder&, std::span<const Value> inputs) const {
  const Value& volume = input_with_positions(inputs, 3);
  // Repetition along one axis at a time needs no kernel of its own.
  return {repeat(repeat(repeat(volume, 0, size_.depth), 1, size_.height), 2, size_.width)};
}

void UpSampling3D::write_config(ConfigWriter& config) const {
  config.integers("size", {size_.depth, size_.height, size_.width});
}

std::shared_ptr<const Layer> UpSampling3D::from_config(const std::string& name, ConfigReader& config) {
  const std::vector<std::int64_t> size = config.integers("size");
  if (size.size() != 3) {
    throw Error(ErrorCode::invalid_argument, fmt::format("\"size\" needs three factors, not {}", size.size()));
  }
  return std::make_shared<const UpSampling3D>(Factors3D{size[0], size[1], size[2]}, ShapeLayerOptions{.name = name});
}

}  // namespace holdfast
