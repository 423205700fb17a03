#pragma once

// Turning, moving and magnifying pictures: each pixel of the result is interpolated at one point of the picture.

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

}  // namespace holdfast
