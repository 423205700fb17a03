// A picture that is not turned has the same columns in all rows, and the same rows in all columns. They are found once,
// so shifts and flips take a few additions a pixel.

#include "data/pictures/picture_motion.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

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
  // Rounded down, without a call of floor() in each pixel.
  auto index = static_cast<std::int64_t>(point);
  if (static_cast<double>(index) > point) --index;
  return {.first = index_at(index, size, edge),
          .second = index_at(index + 1, size, edge),
          .weight = static_cast<float>(point - static_cast<double>(index))};
}

// The picture, and where the middles of the pixels of the result lie in it.
class Motion {
 public:
  Motion(const PictureMotion& motion, std::int64_t height, std::int64_t width)
      : motion_(motion),
        height_(height),
        width_(width),
        center_row_(static_cast<double>(height - 1) / 2),
        center_column_(static_cast<double>(width - 1) / 2) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(motion.turns);
    const double shown = motion.shown;
    cosine_ = shown * std::cos(angle);
    sine_ = shown * std::sin(angle);
  }

  double y_of(std::int64_t row) const {
    return static_cast<double>(row) - center_row_ - static_cast<double>(motion_.down) * static_cast<double>(height_);
  }
  double x_of(std::int64_t column) const {
    return static_cast<double>(column) - center_column_ -
           static_cast<double>(motion_.right) * static_cast<double>(width_);
  }
  AxisPair rows_at(double x, double y) const {
    const double from_y = sine_ * x + cosine_ * y;
    return pair_at(center_row_ + (motion_.flips_rows ? -from_y : from_y), height_, motion_.edge);
  }
  AxisPair columns_at(double x, double y) const {
    const double from_x = cosine_ * x - sine_ * y;
    return pair_at(center_column_ + (motion_.flips_columns ? -from_x : from_x), width_, motion_.edge);
  }

 private:
  const PictureMotion& motion_;
  const std::int64_t height_;
  const std::int64_t width_;
  const double center_row_;
  const double center_column_;
  double cosine_ = 1;
  double sine_ = 0;
};

// Writes the channels of one pixel of the result. `upper` and `lower` are rows of the picture, or null for zeros.
inline void interpolate(const float* upper, const float* lower, float row_weight, const AxisPair& columns,
                        std::int64_t channels, float* output) {
  const auto pixel = [&](const float* row, std::int64_t column, std::int64_t channel) {
    return row == nullptr || column < 0 ? 0.0F : row[column * channels + channel];
  };
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    const float above = (1 - columns.weight) * pixel(upper, columns.first, channel) +
                        columns.weight * pixel(upper, columns.second, channel);
    const float below = (1 - columns.weight) * pixel(lower, columns.first, channel) +
                        columns.weight * pixel(lower, columns.second, channel);
    output[channel] = (1 - row_weight) * above + row_weight * below;
  }
}

}  // namespace

void move_picture(std::span<const float> from, std::int64_t height, std::int64_t width, std::int64_t channels,
                  const PictureMotion& motion, std::span<float> into) {
  HOLDFAST_ASSERT(from.size() == into.size() && std::cmp_equal(into.size(), height * width * channels));
  const Motion points(motion, height, width);
  const auto row_at = [&](std::int64_t row) { return row < 0 ? nullptr : from.data() + row * width * channels; };
  float* output = into.data();
  if (motion.turns == 0) {
    // Without a turn all rows of the result have the same columns of the picture.
    std::vector<AxisPair> columns;
    columns.reserve(static_cast<std::size_t>(width));
    for (std::int64_t column = 0; column < width; ++column)
      columns.push_back(points.columns_at(points.x_of(column), 0));
    for (std::int64_t row = 0; row < height; ++row) {
      const AxisPair rows = points.rows_at(0, points.y_of(row));
      const float* const upper = row_at(rows.first);
      const float* const lower = row_at(rows.second);
      for (const AxisPair& pair : columns) {
        interpolate(upper, lower, rows.weight, pair, channels, output);
        output += channels;
      }
    }
    return;
  }
  for (std::int64_t row = 0; row < height; ++row) {
    const double y = points.y_of(row);
    for (std::int64_t column = 0; column < width; ++column) {
      const double x = points.x_of(column);
      const AxisPair rows = points.rows_at(x, y);
      interpolate(row_at(rows.first), row_at(rows.second), rows.weight, points.columns_at(x, y), channels, output);
      output += channels;
    }
  }
}

}  // namespace holdfast
