#pragma once

// The shapes that every kind of pooling is tested with.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/nn/layer.h"

namespace holdfast {

struct PoolingCase {
  std::string name;
  std::int64_t height, width, channels;
  Extent2D pool;
  Extent2D strides;
  Padding padding;
};

inline std::vector<PoolingCase> pooling_cases() {
  return {{"Halves", 6, 8, 3, 2, 2, Padding::valid},
          {"LeavesARest", 7, 5, 16, 2, 2, Padding::valid},
          {"PadsARest", 7, 5, 3, 2, 2, Padding::same},
          {"WindowsOverlap", 6, 6, 5, 3, 1, Padding::valid},
          {"WindowsOverlapWithPadding", 5, 6, 8, 3, 2, Padding::same},
          {"PaddingOnBothSides", 4, 4, 2, 4, 1, Padding::same},
          {"UnevenWindow", 6, 7, 1, {1, 3}, {2, 1}, Padding::same},
          {"WindowAsLargeAsTheImage", 4, 5, 9, {4, 5}, 1, Padding::valid},
          {"StrideBeyondTheWindow", 8, 8, 4, 2, 3, Padding::valid}};
}

}  // namespace holdfast
