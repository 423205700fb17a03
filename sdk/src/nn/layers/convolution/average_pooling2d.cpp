#include "holdfast/nn/average_pooling2d.h"

#include "nn/layers/convolution/pooling.h"

namespace holdfast {

AveragePooling2D::AveragePooling2D(const PoolingWindows& windows, const std::string& name)
    : LayerOf(name), windows_(windows) {
  check_pooling("AveragePooling2D", windows);
}

AveragePooling2D::AveragePooling2D(Extent2D pool_size, const AveragePooling2DOptions& options)
    : AveragePooling2D(pooling_windows(pool_size, options), options.name) {}

std::vector<Value> AveragePooling2D::build(LayerBuilder&, std::span<const Value> inputs) const {
  return build_pooling(inputs, compute::PoolingKind::average, windows_);
}

void AveragePooling2D::write_config(ConfigWriter& config) const {
  write_pooling(config, windows_);
}

std::shared_ptr<const Layer> AveragePooling2D::from_config(const std::string& name, ConfigReader& config) {
  // std::make_shared() cannot call the private constructor.
  return std::shared_ptr<const Layer>(new AveragePooling2D(read_pooling(config, 2), name));
}

}  // namespace holdfast
