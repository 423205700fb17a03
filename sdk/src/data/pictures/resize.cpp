// Rows come first: the rows that an output row needs are added up over their whole width, in loops that compilers turn
// into vectors, and columns are added up of that one row. A picture of one column and millions of rows needs no more
// memory than another one.

#include "data/pictures/resize.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// Output i of an axis is the sum of weights[k] * input[first + k], with k in [begin, begin + count).
struct AxisTap {
  std::int64_t first = 0;
  std::size_t begin = 0;
  std::size_t count = 0;
};

struct AxisTaps {
  std::vector<AxisTap> taps;  // one for each output
  std::vector<float> weights;
};

// The center of an output pixel, without a rounding of floats that would choose the other one of two neighbours.
AxisTaps nearest_taps(std::int64_t from, std::int64_t to) {
  AxisTaps axis{.taps = {}, .weights = {1.0F}};
  for (std::int64_t i = 0; i < to; ++i) {
    // floor((i + 1/2) * from / to), in integers.
    axis.taps.push_back({.first = std::min((2 * i + 1) * from / (2 * to), from - 1), .begin = 0, .count = 1});
  }
  return axis;
}

// A triangle around the center of each output, as wide as one input, or as one output where that is wider.
AxisTaps triangle_taps(std::int64_t from, std::int64_t to, bool antialias) {
  // In double, and rounded to f32 once, for each weight.
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = antialias ? std::max(scale, 1.0) : 1.0;
  AxisTaps axis;
  for (std::int64_t i = 0; i < to; ++i) {
    // Without the antialiasing, a center beyond the first or last one stands for that.
    double center = (static_cast<double>(i) + 0.5) * scale - 0.5;
    if (!antialias) center = std::clamp(center, 0.0, static_cast<double>(from - 1));
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(center - reach)) + 1);
    const auto last = std::min(from - 1, static_cast<std::int64_t>(std::ceil(center + reach)) - 1);
    double sum = 0;
    for (std::int64_t at = first; at <= last; ++at) sum += 1 - std::abs(static_cast<double>(at) - center) / reach;
    const std::size_t begin = axis.weights.size();
    for (std::int64_t at = first; at <= last; ++at) {
      // Divided by the sum of those that lie within the picture, so at its edges
      // weights still sum to 1 and nothing darkens.
      axis.weights.push_back(static_cast<float>((1 - std::abs(static_cast<double>(at) - center) / reach) / sum));
    }
    axis.taps.push_back({.first = first, .begin = begin, .count = axis.weights.size() - begin});
  }
  return axis;
}

AxisTaps axis_taps(std::int64_t from, std::int64_t to, PictureInterpolation interpolation) {
  if (interpolation == PictureInterpolation::nearest) return nearest_taps(from, to);
  return triangle_taps(from, to, interpolation == PictureInterpolation::antialiased);
}

// Pixels of one row, added up for each output column. The number of channels is a constant, so that compilers unroll
// the loop over them; 0 stands for any other number.
template <std::size_t kChannels>
float* add_columns(std::span<const float> row, const AxisTaps& columns, std::size_t channels, float* output) {
  if constexpr (kChannels != 0) channels = kChannels;
  for (const AxisTap& column : columns.taps) {
    const float* const pixels = row.data() + static_cast<std::size_t>(column.first) * channels;
    const float* const weights = columns.weights.data() + column.begin;
    for (std::size_t channel = 0; channel < channels; ++channel) {
      // One output is one chain of additions, from the first neighbour to the last, as the header promises.
      float sum = 0;
      for (std::size_t k = 0; k < column.count; ++k) sum += weights[k] * pixels[k * channels + channel];
      *output++ = sum;
    }
  }
  return output;
}

// All weights are 1 where a picture keeps its size.
template <typename Pixel>
void copy_rows(const PictureView<Pixel>& from, std::span<float> into) {
  float* output = into.data();
  for (std::int64_t row = 0; row < from.height; ++row) {
    const Pixel* const pixels = from.pixels + row * from.row_pixels;
    const std::int64_t count = from.width * from.channels;
    // The sum of a resized picture begins with 0, which turns -0 into 0.
    for (std::int64_t i = 0; i < count; ++i) output[i] = 0.0F + static_cast<float>(pixels[i]);
    output += count;
  }
}

template <typename Pixel>
void resize_rows(const PictureView<Pixel>& from, std::int64_t height, std::int64_t width,
                 PictureInterpolation interpolation, std::span<float> into) {
  HOLDFAST_ASSERT(std::cmp_equal(into.size(), height * width * from.channels));
  if (from.height == height && from.width == width) return copy_rows(from, into);
  const AxisTaps rows = axis_taps(from.height, height, interpolation);
  const AxisTaps columns = axis_taps(from.width, width, interpolation);
  const auto channels = static_cast<std::size_t>(from.channels);
  std::vector<float> row(static_cast<std::size_t>(from.width) * channels);
  float* output = into.data();
  for (const AxisTap& tap : rows.taps) {
    for (std::size_t k = 0; k < tap.count; ++k) {
      const float weight = rows.weights[tap.begin + k];
      const Pixel* const pixels = from.pixels + (tap.first + static_cast<std::int64_t>(k)) * from.row_pixels;
      // The first row is stored and not added, so the buffer needs no zeros.
      if (k == 0) {
        for (std::size_t i = 0; i < row.size(); ++i) row[i] = weight * static_cast<float>(pixels[i]);
      } else {
        for (std::size_t i = 0; i < row.size(); ++i) row[i] += weight * static_cast<float>(pixels[i]);
      }
    }
    output = channels == 3   ? add_columns<3>(row, columns, channels, output)
             : channels == 1 ? add_columns<1>(row, columns, channels, output)
                             : add_columns<0>(row, columns, channels, output);
  }
}

}  // namespace

void resize_picture(const PictureView<std::uint8_t>& from, std::int64_t height, std::int64_t width,
                    PictureInterpolation interpolation, std::span<float> into) {
  resize_rows(from, height, width, interpolation, into);
}

void resize_picture(const PictureView<float>& from, std::int64_t height, std::int64_t width,
                    PictureInterpolation interpolation, std::span<float> into) {
  resize_rows(from, height, width, interpolation, into);
}

std::uint8_t byte_of(float value) {
  // A NaN becomes 0: it is not greater.
  return value > 0 ? static_cast<std::uint8_t>(std::min(value + 0.5F, 255.0F)) : std::uint8_t{0};
}

}  // namespace holdfast
