#include "holdfast/nn/max_pooling2d.h"

#include "nn/layers/pooling.h"

namespace holdfast {

MaxPooling2D::MaxPooling2D(Extent2D pool_size, const MaxPooling2DOptions& options)
    : LayerOf(options.name),
      pool_size_(pool_size),
      strides_(options.strides.value_or(pool_size)),
      padding_(options.padding) {
  check_pooling("MaxPooling2D", {pool_size_, strides_, padding_});
}

std::vector<Value> MaxPooling2D::build(LayerBuilder&, std::span<const Value> inputs) const {
  return build_pooling(inputs, compute::PoolingKind::maximum, {pool_size_, strides_, padding_});
}

void MaxPooling2D::write_config(ConfigWriter& config) const {
  write_pooling(config, {pool_size_, strides_, padding_});
}

std::shared_ptr<const Layer> MaxPooling2D::from_config(const std::string& name, ConfigReader& config) {
  const PoolingWindow window = read_pooling(config);
  const MaxPooling2DOptions options = {.strides = window.strides, .padding = window.padding, .name = name};
  return std::make_shared<const MaxPooling2D>(window.size, options);
}

}  // namespace holdfast
