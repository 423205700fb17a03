#include "holdfast/nn/average_pooling2d.h"

#include "nn/layers/pooling.h"

namespace holdfast {

AveragePooling2D::AveragePooling2D(Extent2D pool_size, const AveragePooling2DOptions& options)
    : LayerOf(options.name),
      pool_size_(pool_size),
      strides_(options.strides.value_or(pool_size)),
      padding_(options.padding) {
  check_pooling("AveragePooling2D", {pool_size_, strides_, padding_});
}

std::vector<Value> AveragePooling2D::build(LayerBuilder&, std::span<const Value> inputs) const {
  return build_pooling(inputs, compute::PoolingKind::average, {pool_size_, strides_, padding_});
}

void AveragePooling2D::write_config(ConfigWriter& config) const {
  write_pooling(config, {pool_size_, strides_, padding_});
}

std::shared_ptr<const Layer> AveragePooling2D::from_config(const std::string& name, ConfigReader& config) {
  const PoolingWindow window = read_pooling(config);
  const AveragePooling2DOptions options = {.strides = window.strides, .padding = window.padding, .name = name};
  return std::make_shared<const AveragePooling2D>(window.size, options);
}

}  // namespace holdfast
