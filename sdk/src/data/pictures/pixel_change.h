#pragma once

// The frame of changes that write pixels in their places: samples of u8 are changed as floats from 0 to 255.

#include <functional>
#include <span>
#include <string>

#include "holdfast/core/random.h"
#include "holdfast/core/shape.h"
#include "holdfast/data/picture_changes.h"
#include "holdfast/data/picture_colors.h"

namespace holdfast {

// The pixels of one sample.
struct Pixels {
  std::span<float> values;  // [height, width, channels]
  const Shape& shape;
  float most;  // white

  std::size_t channels() const { return static_cast<std::size_t>(shape[2]); }
};

struct PixelChange {
  std::string name;  // of the function
  std::string options;
  bool draws = true;
  bool needs_colors = false;  // three channels
  float max_value = 1;
  std::function<void(const Pixels&, Random&)> apply{};
};

// Throws Error{invalid_argument} for a max_value that is not a finite number above 0.
PictureChange change_of_pixels(PixelChange change);

// Throws Error{invalid_argument} that names function and option unless least <= value <= most; a NaN is refused, too.
void check_number(const std::string& function, const std::string& option, float value, float least, float most);
// The same for both ends of a range, which must rise.
void check_range(const std::string& function, const std::string& option, const DrawnRange& range, float least,
                 float most);
// One draw, also where both ends are equal: what later changes of the sample draw does not depend on options.
float drawn_from(const DrawnRange& range, Random& random);
std::string text_of(const DrawnRange& range);

// Cuts values to 0 to white.
void clamp_pixels(const Pixels& pixels);

}  // namespace holdfast
