#pragma once

// Turning, moving and magnifying pictures: each pixel of the result is interpolated at one point of the picture.

#include <array>
#include <cstdint>
#include <span>

#include "holdfast/data/picture_changes.h"

namespace holdfast {

// A motion of the content about the center of the picture.
struct PictureMotion {
  bool flips_rows = false;     // top and bottom
  bool flips_columns = false;  // left and right
  float turns = 0;             // counterclockwise, in full turns
  float down = 0;              // in heights
  float right = 0;             // in widths
  float shown = 1;             // the part of each side that fills the result: 0.5 shows a quarter of the pixels, larger
  PictureEdge edge = PictureEdge::reflect;
};

// `from` and `into` are [height, width, channels] and do not overlap.
void move_picture(std::span<const float> from, std::int64_t height, std::int64_t width, std::int64_t channels,
                  const PictureMotion& motion, std::span<float> into);

// Where in a picture the result is taken from, x for columns and y for rows: at (x, y) it is the picture at
//
//   ((x_of_x x + x_of_y y + first_x) / k,  (y_of_x x + y_of_y y + first_y) / k),  k = k_of_x x + k_of_y y + 1
struct PictureWarp {
  double x_of_x = 1, x_of_y = 0, first_x = 0;
  double y_of_x = 0, y_of_y = 1, first_y = 0;
  double k_of_x = 0, k_of_y = 0;
};

struct PicturePoint {
  double x = 0;  // column
  double y = 0;  // row
};

// The first and the last pixel of the first row, then those of the last row.
using PictureCorners = std::array<PicturePoint, 4>;

PictureCorners corners_of(std::int64_t height, std::int64_t width);

// The warp that moves what lies at `from` to `to`. Nothing moves if no warp does that, as with three points on a line.
PictureWarp warp_between(const PictureCorners& from, const PictureCorners& to);

// As move_picture().
void warp_picture(std::span<const float> from, std::int64_t height, std::int64_t width, std::int64_t channels,
                  const PictureWarp& warp, PictureEdge edge, std::span<float> into);

}  // namespace holdfast
