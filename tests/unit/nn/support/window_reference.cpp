#include "unit/nn/support/window_reference.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace holdfast::reference {
namespace {

struct Line {
  std::int64_t count = 0;
  std::int64_t before = 0;
};

Line line_of(const Windows& windows, std::size_t axis) {
  const std::int64_t extent = windows.extents[axis], stride = windows.strides[axis];
  const std::int64_t reach = windows.dilation[axis] * (windows.sizes[axis] - 1) + 1;
  if (windows.padding == "valid") return {(extent - reach + stride) / stride, 0};
  const std::int64_t count = (extent + stride - 1) / stride;
  if (windows.padding == "causal") return {count, reach - 1};
  return {count, std::max<std::int64_t>((count - 1) * stride + reach - extent, 0) / 2};
}

std::int64_t volume_of(const Axes& extents) {
  return extents[0] * extents[1] * extents[2];
}

void for_each(const Axes& extents, const std::function<void(const Axes&)>& visit) {
  for (std::int64_t i = 0; i < extents[0]; ++i) {
    for (std::int64_t j = 0; j < extents[1]; ++j) {
      for (std::int64_t k = 0; k < extents[2]; ++k) visit({i, j, k});
    }
  }
}

std::int64_t place_in(const Axes& extents, const Axes& at) {
  return (at[0] * extents[1] + at[1]) * extents[2] + at[2];
}

// Calls visit(first place of the sample, places in it and in the window) for each window.
struct Element {
  std::int64_t input;
  std::int64_t of_window;
};
void for_each_window(const Windows& windows, std::int64_t samples,
                     const std::function<void(const std::vector<Element>&)>& visit) {
  const std::array<Line, 3> lines = {line_of(windows, 0), line_of(windows, 1), line_of(windows, 2)};
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    for_each({lines[0].count, lines[1].count, lines[2].count}, [&](const Axes& position) {
      std::vector<Element> elements;
      for_each(windows.sizes, [&](const Axes& of_window) {
        Axes at{};
        for (std::size_t axis = 0; axis < 3; ++axis) {
          at[axis] =
              position[axis] * windows.strides[axis] + of_window[axis] * windows.dilation[axis] - lines[axis].before;
          if (at[axis] < 0 || at[axis] >= windows.extents[axis]) return;
        }
        elements.push_back(
            {sample * volume_of(windows.extents) + place_in(windows.extents, at), place_in(windows.sizes, of_window)});
      });
      visit(elements);
    });
  }
}

std::int64_t samples_of(const Values& input, const Windows& windows, std::int64_t channels) {
  return static_cast<std::int64_t>(input.size()) / (volume_of(windows.extents) * channels);
}

double element(const Values& values, std::int64_t index) {
  return values[static_cast<std::size_t>(index)];
}

}  // namespace

Axes axes_of(const std::vector<std::int64_t>& list) {
  Axes axes = {1, 1, 1};
  std::copy_backward(list.begin(), list.end(), axes.end());
  return axes;
}

Values slide_kernel(const Values& input, const Windows& windows, const Kernel& kernel) {
  const std::int64_t group_channels = kernel.channels / kernel.groups;
  Values output;
  for_each_window(windows, samples_of(input, windows, kernel.channels), [&](const std::vector<Element>& elements) {
    for (std::int64_t filter = 0; filter < kernel.filters; ++filter) {
      const std::int64_t first = filter / (kernel.filters / kernel.groups) * group_channels;
      double sum = kernel.bias.empty() ? 0 : element(kernel.bias, filter);
      for (const Element& at : elements) {
        for (std::int64_t channel = 0; channel < group_channels; ++channel) {
          sum += element(input, at.input * kernel.channels + first + channel) *
                 element(kernel.weights, (at.of_window * group_channels + channel) * kernel.filters + filter);
        }
      }
      output.push_back(sum);
    }
  });
  return output;
}

Values slide_pool(const Values& input, const Windows& windows, std::int64_t channels, bool is_maximum) {
  Values output;
  for_each_window(windows, samples_of(input, windows, channels), [&](const std::vector<Element>& elements) {
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      Values window;
      for (const Element& at : elements) window.push_back(element(input, at.input * channels + channel));
      const double sum = std::accumulate(window.begin(), window.end(), 0.0);
      output.push_back(is_maximum ? *std::max_element(window.begin(), window.end())
                                  : sum / static_cast<double>(window.size()));
    }
  });
  return output;
}

}  // namespace holdfast::reference
