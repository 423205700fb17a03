#pragma once

// What MaxPooling2D and AveragePooling2D share.

#include "compute/backend.h"
#include "nn/graph/config.h"

namespace holdfast {

struct PoolingWindow {
  Extent2D size;
  Extent2D strides;
  Padding padding = Padding::valid;
};

// Throws Error{invalid_argument} unless all numbers are in [1, Layer::kMaximumExtent].
void check_pooling(std::string_view kind, const PoolingWindow& window);
std::vector<Value> build_pooling(std::span<const Value> inputs, compute::PoolingKind kind, const PoolingWindow& window);

void write_pooling(ConfigWriter& config, const PoolingWindow& window);
PoolingWindow read_pooling(ConfigReader& config);

}  // namespace holdfast
