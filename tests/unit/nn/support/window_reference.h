#pragma once

// Windows along three axes, in double and plain loops, written from the definitions: what tests of convolutions and
// pooling with one to three spatial axes compare with. An axis that a layer lacks has an extent of 1 and comes first.

#include <array>

#include "unit/nn/support/reference.h"

namespace holdfast::reference {

using Axes = std::array<std::int64_t, 3>;

// The axes of a list with one to three numbers.
Axes axes_of(const std::vector<std::int64_t>& list);

struct Windows {
  Axes extents = {1, 1, 1};
  Axes sizes = {1, 1, 1};
  Axes strides = {1, 1, 1};
  Axes dilation = {1, 1, 1};
  std::string padding = "valid";
};

struct Kernel {
  Values weights;  // [size, size, size, channels / groups, filters]
  Values bias;     // empty without one
  std::int64_t channels = 1;
  std::int64_t filters = 1;
  std::int64_t groups = 1;
};

// Input [samples, extents, channels].
Values slide_kernel(const Values& input, const Windows& windows, const Kernel& kernel);
// The largest element of each window, or the mean of those that are not padding.
Values slide_pool(const Values& input, const Windows& windows, std::int64_t channels, bool is_maximum);

}  // namespace holdfast::reference
