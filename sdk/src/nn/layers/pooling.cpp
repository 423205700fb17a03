#include "nn/layers/pooling.h"

#include "nn/operations/checks.h"
#include "nn/operations/operations.h"

namespace holdfast {

void check_pooling(std::string_view kind, const PoolingWindow& window) {
  check_extent(kind, "window extents", window.size);
  check_extent(kind, "strides", window.strides);
}

std::vector<Value> build_pooling(std::span<const Value> inputs, compute::PoolingKind kind,
                                 const PoolingWindow& window) {
  return {pooling(only_input(inputs),
                  {.kind = kind, .size = window.size, .strides = window.strides, .padding = window.padding})};
}

void write_pooling(ConfigWriter& config, const PoolingWindow& window) {
  config.extent("pool_size", window.size);
  config.extent("strides", window.strides);
  config.text("padding", name(window.padding));
}

PoolingWindow read_pooling(ConfigReader& config) {
  const Extent2D size = config.extent("pool_size");
  const Extent2D strides = config.extent("strides");
  return {.size = size, .strides = strides, .padding = padding_from_name(config.text("padding"))};
}

}  // namespace holdfast
