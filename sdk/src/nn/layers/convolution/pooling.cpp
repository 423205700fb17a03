#include "nn/layers/convolution/pooling.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "nn/operations/checks.h"
#include "nn/operations/operations.h"

namespace holdfast {

void check_pooling(std::string_view kind, const PoolingWindows& windows) {
  check_extents(kind, "window extents", windows.size);
  check_extents(kind, "strides", windows.strides);
  // Back ends have no causal pooling, and neither has Keras.
  if (windows.padding != Padding::causal) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} needs padding valid or same, not causal, which is for convolutions", kind));
}

std::vector<Value> build_pooling(std::span<const Value> inputs, compute::PoolingKind kind,
                                 const PoolingWindows& windows) {
  // Strides are complete: pooling_windows() and files have one for each axis.
  return {pooling(only_input(inputs),
                  {.kind = kind, .size = windows.size, .strides = windows.strides, .padding = windows.padding})};
}

void write_pooling(ConfigWriter& config, const PoolingWindows& windows) {
  config.integers("pool_size", windows.size);
  config.integers("strides", windows.strides);
  config.text("padding", name(windows.padding));
}

// Numbers out of range are refused by the constructor that gets these windows, with check_pooling().
PoolingWindows read_pooling(ConfigReader& config, std::size_t spatial_axes) {
  return {.size = read_extents(config, "pool_size", spatial_axes),
          .strides = read_extents(config, "strides", spatial_axes),
          .padding = padding_from_name(config.text("padding"))};
}

}  // namespace holdfast
