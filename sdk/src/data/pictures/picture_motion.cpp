#include "data/pictures/picture_motion.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// The two pixels of an axis next to a point, and the weight of the second one. -1 stands for a pixel that is 0.
struct AxisPair {
  std::int64_t first = 0;
  std::int64_t second = 0;
  float weight = 0;
};

std::int64_t index_at(std::int64_t index, std::int64_t size, PictureEdge edge) {
  if (index >= 0 && index < size) return index;
  if (edge == PictureEdge::constant) return -1;
  if (edge == PictureEdge::repeat) return std::clamp<std::int64_t>(index, 0, size - 1);
  // Mirrored at the edges of the first and last pixel, as often as needed.
  const std::int64_t period = 2 * size;
  const std::int64_t within = (index % period + period) % period;
  return within < size ? within : period - 1 - within;
}

AxisPair pair_at(double point, std::int64_t size, PictureEdge edge) {
  const double below = std::floor(point);
  const auto index = static_cast<std::int64_t>(below);
  return {.first = index_at(index, size, edge),
          .second = index_at(index + 1, size, edge),
          .weight = static_cast<float>(point - below)};
}

}  // namespace

void move_picture(std::span<const float> from, std::int64_t height, std::int64_t width, std::int64_t channels,
                  const PictureMotion& motion, std::span<float> into) {
  HOLDFAST_ASSERT(from.size() == into.size() && std::cmp_equal(into.size(), height * width * channels));
  const double angle = 2 * std::numbers::pi * static_cast<double>(motion.turns);
  const double shown = motion.shown;
  const double cosine = shown * std::cos(angle);
  const double sine = shown * std::sin(angle);
  const double center_row = static_cast<double>(height - 1) / 2;
  const double center_column = static_cast<double>(width - 1) / 2;
  float* output = into.data();
  for (std::int64_t row = 0; row < height; ++row) {
    const double y =
        static_cast<double>(row) - center_row - static_cast<double>(motion.down) * static_cast<double>(height);
    for (std::int64_t column = 0; column < width; ++column) {
      const double x =
          static_cast<double>(column) - center_column - static_cast<double>(motion.right) * static_cast<double>(width);
      const double from_y = sine * x + cosine * y;
      const double from_x = cosine * x - sine * y;
      const AxisPair rows = pair_at(center_row + (motion.flips_rows ? -from_y : from_y), height, motion.edge);
      const AxisPair columns = pair_at(center_column + (motion.flips_columns ? -from_x : from_x), width, motion.edge);
      const auto pixel = [&](std::int64_t r, std::int64_t c, std::int64_t channel) {
        return r < 0 || c < 0 ? 0.0F : from[static_cast<std::size_t>((r * width + c) * channels + channel)];
      };
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        const float upper = (1 - columns.weight) * pixel(rows.first, columns.first, channel) +
                            columns.weight * pixel(rows.first, columns.second, channel);
        const float lower = (1 - columns.weight) * pixel(rows.second, columns.first, channel) +
                            columns.weight * pixel(rows.second, columns.second, channel);
        *output++ = (1 - rows.weight) * upper + rows.weight * lower;
      }
    }
  }
}

}  // namespace holdfast
