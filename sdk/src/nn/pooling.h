#pragma once

// What MaxPooling2D and AveragePooling2D share.

#include "compute/backend.h"
#include "nn/config.h"
#include "nn/model_stage_builder.h"

namespace holdfast {

struct PoolingWindow {
  Extent2D size;
  Extent2D strides;
  Padding padding = Padding::valid;
};

// Throws Error{invalid_argument} unless all numbers are in [1, Layer::kMaximumExtent].
void check_pooling(std::string_view kind, const PoolingWindow& window);
// Throws Error{invalid_argument} for an input that the window cannot slide over.
Shape pooled_shape(const Shape& input, const PoolingWindow& window);
void add_pooling(ModelStageBuilder& builder, compute::PoolingKind kind, const PoolingWindow& window);

void write_pooling(ConfigWriter& config, const PoolingWindow& window);
PoolingWindow read_pooling(ConfigReader& config);

}  // namespace holdfast
