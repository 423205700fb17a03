#pragma once

// The place of an element in an array [sample, row, column, channel], for host and device.

#include <cstdint>

#include "compute/arithmetic/divisor.h"
#include "core/host_device.h"

namespace holdfast::compute {

struct ImageElement {
  HOLDFAST_HOST_DEVICE ImageElement(std::int64_t index, const Divisor& height, const Divisor& width,
                                    const Divisor& channels) {
    std::int64_t pixel = 0;
    std::int64_t line = 0;
    if (index <= Divisor::kLargest) {
      const std::int32_t near_pixel = channels.quotient(static_cast<std::int32_t>(index));
      const std::int32_t near_line = width.quotient(near_pixel);
      pixel = near_pixel;
      line = near_line;
      sample = height.quotient(near_line);
    } else {
      pixel = index / std::int64_t{channels};
      line = pixel / std::int64_t{width};
      sample = line / std::int64_t{height};
    }
    channel = static_cast<std::int32_t>(index - pixel * channels);
    column = static_cast<std::int32_t>(pixel - line * width);
    row = static_cast<std::int32_t>(line - sample * height);
  }

  std::int64_t sample;
  std::int32_t row;
  std::int32_t column;
  std::int32_t channel;
};

}  // namespace holdfast::compute
