#pragma once

// The place of an element in an array [sample, row, column, channel], for host and device.

#include <cstdint>

#include "core/host_device.h"

namespace holdfast::compute {

struct ImageElement {
  HOLDFAST_HOST_DEVICE ImageElement(std::int64_t index, std::int64_t height, std::int64_t width, std::int64_t channels)
      : channel(index % channels),
        column(index / channels % width),
        row(index / channels / width % height),
        sample(index / channels / width / height) {}

  std::int64_t channel;
  std::int64_t column;
  std::int64_t row;
  std::int64_t sample;
};

}  // namespace holdfast::compute
