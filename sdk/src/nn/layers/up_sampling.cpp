#include "holdfast/nn/up_sampling.h"

#include <fmt/format.h>

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
