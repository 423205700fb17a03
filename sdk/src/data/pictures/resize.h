#pragma once

// Resampling of pictures: both axes one after the other, with weights that depend on the sizes alone.

#include <cstdint>
#include <span>

#include "holdfast/data/pictures.h"

namespace holdfast {

// A part of a picture in memory, of f32 or u8.
template <typename Pixel>
struct PictureView {
  const Pixel* pixels = nullptr;  // of the first row of the part
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  std::int64_t row_pixels = 0;  // elements from one row to the next
};

// Writes [height, width, channels] numbers. Sums run from the first row and column to the last, in f32. Takes memory
// for one row of the part.
void resize_picture(const PictureView<std::uint8_t>& from, std::int64_t height, std::int64_t width,
                    PictureInterpolation interpolation, std::span<float> into);
void resize_picture(const PictureView<float>& from, std::int64_t height, std::int64_t width,
                    PictureInterpolation interpolation, std::span<float> into);

// The nearest of 0 to 255; halves are rounded up.
std::uint8_t byte_of(float value);

}  // namespace holdfast
