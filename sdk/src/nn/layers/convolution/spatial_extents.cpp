#include "nn/layers/convolution/spatial_extents.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"

namespace holdfast {

std::vector<std::int64_t> read_extents(ConfigReader& config, std::string_view key, std::size_t axes) {
  std::vector<std::int64_t> extents = config.integers(key);
  // Constructors rely on one number for each axis, and a file may hold any list.
  if (extents.size() == axes) return extents;
  throw Error(ErrorCode::invalid_file,
              fmt::format("\"{}\" of the model graph needs {} integers, not {}", key, axes, extents.size()));
}

}  // namespace holdfast
