// A picture that is not turned has the same columns in all rows, and the same rows in all columns. They are found once,
// so shifts and flips take a few additions a pixel. docs/decisions/pictures.md

#include "data/pictures/picture_motion.h"

#include <algorithm>
#include <array>
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

// The point lies between two pixels, and the weight is its distance from the first. Both are found by the same rule, so
// a point on the edge mixes with what lies beyond it.
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
    // The inverse of the motion: it leads from a pixel of the result to its point in the picture,
    // so that each pixel of the result is written once and none is left empty. In double, because a
    // point is a sum of large and small numbers.
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
    // Both weights are multiplied even where one is 0. Leaving one out would give
    // other bits for an infinite or NaN pixel.
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
  // The same numbers come out of both branches: without a turn the sine is 0, and so is what it adds.
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

namespace {

using LinearRow = std::array<double, 9>;  // eight factors of the unknowns, and the right side

// Gaussian elimination with pivots. Returns false if there is not one solution, which is left in the last numbers.
// In double, with columns of very different sizes: products of coordinates stand next to ones. The pivot keeps the
// error small. The draws of a sample decide about the numbers, so a system without a solution is not an error.
bool solve_for_warp(std::array<LinearRow, 8>& rows) {
  constexpr double kLeastPivot = 1e-12;
  for (std::size_t column = 0; column < rows.size(); ++column) {
    const auto below = rows.begin() + static_cast<std::ptrdiff_t>(column);
    const auto pivot = std::max_element(below, rows.end(), [column](const LinearRow& a, const LinearRow& b) {
      return std::abs(a[column]) < std::abs(b[column]);
    });
    std::iter_swap(below, pivot);
    const LinearRow& chosen = rows[column];
    if (!(std::abs(chosen[column]) > kLeastPivot)) return false;
    // Above and below the pivot (Gauss and Jordan), so nothing is left to substitute.
    for (LinearRow& row : rows) {
      if (&row == &chosen) continue;
      const double factor = row[column] / chosen[column];
      for (std::size_t i = column; i < row.size(); ++i) row[i] -= factor * chosen[i];
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].back() /= rows[i][i];
  return true;
}

// A point far beyond all pictures, where a warp has none: a float that is not finite is not an index.
double within_reach(double point) {
  constexpr double kReach = 1e9;
  // Catches a NaN too, which is not greater than anything.
  if (!(point > -kReach)) return -kReach;
  return std::min(point, kReach);
}

}  // namespace

// Middles of pixels, not edges: coordinates count from the first pixel, as in Keras.
PictureCorners corners_of(std::int64_t height, std::int64_t width) {
  const auto right = static_cast<double>(width - 1);
  const auto bottom = static_cast<double>(height - 1);
  return {PicturePoint{0, 0}, PicturePoint{right, 0}, PicturePoint{0, bottom}, PicturePoint{right, bottom}};
}

// Two equations for each corner: the result at `to` is the picture at `from`, multiplied by k.
PictureWarp warp_between(const PictureCorners& from, const PictureCorners& to) {
  std::array<LinearRow, 8> rows{};
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto [x, y] = to[i];
    const auto [from_x, from_y] = from[i];
    rows[2 * i] = {x, y, 1, 0, 0, 0, -from_x * x, -from_x * y, from_x};
    rows[2 * i + 1] = {0, 0, 0, x, y, 1, -from_y * x, -from_y * y, from_y};
  }
  if (!solve_for_warp(rows)) return {};
  const auto number = [&](std::size_t i) { return rows[i].back(); };
  return {.x_of_x = number(0),
          .x_of_y = number(1),
          .first_x = number(2),
          .y_of_x = number(3),
          .y_of_y = number(4),
          .first_y = number(5),
          .k_of_x = number(6),
          .k_of_y = number(7)};
}

void warp_picture(std::span<const float> from, std::int64_t height, std::int64_t width, std::int64_t channels,
                  const PictureWarp& warp, PictureEdge edge, std::span<float> into) {
  HOLDFAST_ASSERT(from.size() == into.size() && std::cmp_equal(into.size(), height * width * channels));
  const auto row_at = [&](std::int64_t row) { return row < 0 ? nullptr : from.data() + row * width * channels; };
  float* output = into.data();
  for (std::int64_t row = 0; row < height; ++row) {
    const auto y = static_cast<double>(row);
    for (std::int64_t column = 0; column < width; ++column) {
      const auto x = static_cast<double>(column);
      // May be 0, where the point lies at infinity, or below, beyond it. within_reach() makes a number of either.
      const double k = warp.k_of_x * x + warp.k_of_y * y + 1;
      const double from_x = within_reach((warp.x_of_x * x + warp.x_of_y * y + warp.first_x) / k);
      const double from_y = within_reach((warp.y_of_x * x + warp.y_of_y * y + warp.first_y) / k);
      const AxisPair rows = pair_at(from_y, height, edge);
      interpolate(row_at(rows.first), row_at(rows.second), rows.weight, pair_at(from_x, width, edge), channels, output);
      output += channels;
    }
  }
}

}  // namespace holdfast
