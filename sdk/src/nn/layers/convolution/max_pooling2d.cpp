#include "holdfast/nn/max_pooling2d.h"

#include "nn/layers/convolution/pooling.h"

namespace holdfast {

MaxPooling2D::MaxPooling2D(const PoolingWindows& windows, const std::string& name) : LayerOf(name), windows_(windows) {
  check_pooling("MaxPooling2D", windows);
}

MaxPooling2D::MaxPooling2D(Extent2D pool_size, const MaxPooling2DOptions& options)
    : MaxPooling2D(pooling_windows(pool_size, options), options.name) {}

std::vector<Value> MaxPooling2D::build(LayerBuilder&, std::span<const Value> inputs) const {
  return build_pooling(inputs, compute::PoolingKind::maximum, windows_);
}

void MaxPooling2D::write_config(ConfigWriter& config) const {
  write_pooling(config, windows_);
}

std::shared_ptr<const Layer> MaxPooling2D::from_config(const std::string& name, ConfigReader& config) {
  // std::make_shared() cannot call the private constructor.
  return std::shared_ptr<const Layer>(new MaxPooling2D(read_pooling(config, 2), name));
}

}  // namespace holdfast
