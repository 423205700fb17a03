#pragma once

// Extents of layers as lists, with a number for each spatial axis.

#include <vector>

#include "nn/graph/config.h"

namespace holdfast {

// The first axis of a sample comes first: steps, or height and width, or depth, height and width.
inline std::vector<std::int64_t> extents_of(std::int64_t extent) {
  return {extent};
}
inline std::vector<std::int64_t> extents_of(Extent2D extent) {
  return {extent.height, extent.width};
}
inline std::vector<std::int64_t> extents_of(Extent3D extent) {
  return {extent.depth, extent.height, extent.width};
}

// Throws Error{invalid_file} or Error{invalid_argument} unless the file has a number for each axis.
std::vector<std::int64_t> read_extents(ConfigReader& config, std::string_view key, std::size_t axes);

}  // namespace holdfast
