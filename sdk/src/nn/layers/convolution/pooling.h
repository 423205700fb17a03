#pragma once

// What the layers of pooling share, for any number of spatial axes.

#include "compute/backend.h"
#include "holdfast/nn/functions.h"
#include "nn/layers/convolution/spatial_extents.h"

namespace holdfast {

// The windows of options whose strides, if missing, are the size of a window.
template <class Extent>
PoolingWindows pooling_windows(const Extent& size, const auto& options) {
  return {extents_of(size), extents_of(options.strides.value_or(size)), options.padding};
}

// Throws Error{invalid_argument} that names `kind` unless all numbers are in [1, Layer::kMaximumExtent] and the padding
// is valid or same.
void check_pooling(std::string_view kind, const PoolingWindows& windows);
// Pools the only input. Throws Error{invalid_argument} for another rank, or if no window fits.
std::vector<Value> build_pooling(std::span<const Value> inputs, compute::PoolingKind kind,
                                 const PoolingWindows& windows);

void write_pooling(ConfigWriter& config, const PoolingWindows& windows);
PoolingWindows read_pooling(ConfigReader& config, std::size_t spatial_axes);

}  // namespace holdfast
