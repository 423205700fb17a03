// Samples of floats are changed where they come out, and those of bytes as floats from 0 to 255 that are rounded once,
// at the end. So each change is written once, for both.

#include "data/pictures/pixel_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "data/pictures/picture_arrays.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// Checked once, when map() is written: all samples of a data set have one shape.
void check_colors(const std::string& function, const ArraySpec& input) {
  if (input.shape[2] == 3) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}() takes pictures of three channels, red, green and blue, and samples have {}; read them "
                          "with .channels = 3",
                          function, input.to_string()));
}

void change_row(const PixelChange& change, const ArrayRow& from, const ArrayRow& into, Random& random) {
  const ArraySpec& array = from.layout().arrays()[0];
  if (array.dtype == DType::f32) {
    std::ranges::copy(from.elements<float>(0), into.elements<float>(0).begin());
    // `from` must stay as it is, so the change works on its copy.
    change.apply({.values = into.elements<float>(0), .shape = array.shape, .most = change.max_value}, random);
    return;
  }
  std::vector<float> pixels = floats_of(from);
  change.apply({.values = pixels, .shape = array.shape, .most = 255.0F}, random);
  write_floats(pixels, into);
}

}  // namespace

PictureChange change_of_pixels(PixelChange change) {
  if (!(change.max_value > 0 && std::isfinite(change.max_value))) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}(): max_value is a finite number above 0, not {}", change.name, change.max_value));
  }
  // The name stands in descriptions, which runs compare when they resume. So max_value is always there, also for bytes.
  const std::string name = fmt::format("{} {}, max_value {}", change.name, change.options, change.max_value);
  const bool draws = change.draws;
  const auto output = [function = change.name, needs_colors = change.needs_colors](const ArraySpec& input) {
    check_picture(function, input);
    if (needs_colors) check_colors(function, input);
    return input;
  };
  const auto apply = [change = std::move(change)](const ArrayRow& from, const ArrayRow& into, Random& random) {
    change_row(change, from, into, random);
  };
  return {.name = name, .output = output, .apply = apply, .draws = draws};
}

void check_number(const std::string& function, const std::string& option, float value, float least, float most) {
  // Written so that a NaN is refused too.
  if (value >= least && value <= most) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}(): {} is {} to {}, not {}", function, option, least, most, value));
}

void check_range(const std::string& function, const std::string& option, const DrawnRange& range, float least,
                 float most) {
  check_number(function, option, range.least, least, most);
  check_number(function, option, range.most, least, most);
  if (range.least <= range.most) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}(): {} is drawn from {} to {}; name the smaller end first",
                                                       function, option, range.least, range.most));
}

// Draws also where both ends are equal, so that no later draw depends on this option.
float drawn_from(const DrawnRange& range, Random& random) {
  return range.least + (range.most - range.least) * random.uniform();
}

std::string text_of(const DrawnRange& range) {
  return fmt::format("{} to {}", range.least, range.most);
}

void clamp_pixels(const Pixels& pixels) {
  for (float& value : pixels.values) value = std::clamp(value, 0.0F, pixels.most);
}

}  // namespace holdfast
