// Changes of red, green and blue. Formulas are those of Keras 3, with pixels from 0 to white instead of 0 to 255, so
// that both kinds of samples take the same numbers.

#include "holdfast/data/picture_colors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/pictures/picture_arrays.h"
#include "data/pictures/pixel_change.h"

namespace holdfast {
namespace {

// The weights of ITU-R BT.601 with the digits that Keras has. The decoders have them with others, see png_decoder.cpp.
float gray_of(const float* pixel) {
  return 0.2989F * pixel[0] + 0.587F * pixel[1] + 0.114F * pixel[2];
}

// Calls change(pixel) with the three channels of each pixel.
template <typename Change>
void for_each_color(const Pixels& pixels, const Change& change) {
  for (std::size_t at = 0; at < pixels.values.size(); at += 3) change(pixels.values.data() + at);
}

// In this form a factor of 0 gives the pixel to the bit.
void blend_with_gray(const Pixels& pixels, float factor) {
  for_each_color(pixels, [&](float* pixel) {
    const float gray = gray_of(pixel);
    for (int channel = 0; channel < 3; ++channel) pixel[channel] += factor * (gray - pixel[channel]);
  });
}

// Hue and saturation are 0 to 1, and value is that of the pixel.
struct HueSaturationValue {
  float hue = 0;
  float saturation = 0;
  float value = 0;
};

// One such channel would make a NaN of all three.
float finite_color(float channel) {
  if (std::isfinite(channel)) return channel;
  return channel > 0 ? std::numeric_limits<float>::max() : 0.0F;
}

HueSaturationValue hsv_of(const float* pixel) {
  const float red = finite_color(pixel[0]);
  const float green = finite_color(pixel[1]);
  const float blue = finite_color(pixel[2]);
  const float value = std::max({red, green, blue});
  const float range = value - std::min({red, green, blue});
  const float sixth = 1 / (6 * range);
  // Gray has no hue. A range near 0 is gray as well: a sixth that is infinite would make a NaN of its hue.
  if (!std::isfinite(sixth)) return {.hue = 0, .saturation = 0, .value = value};
  float hue = 0;
  // Exact comparisons are right here: `value` is one of the three. Where two are equal, both formulas give one hue.
  if (value == red) {
    hue = sixth * (green - blue);
  } else if (value == green) {
    hue = sixth * (blue - red) + 2.0F / 6;
  } else {
    hue = sixth * (red - green) + 4.0F / 6;
  }
  // Next to a channel below 0 the quotient may be infinite, as with black, and infinity times 0 would be NaN.
  const float most = std::numeric_limits<float>::max();
  return {.hue = hue < 0 ? hue + 1 : hue, .saturation = std::clamp(range / value, -most, most), .value = value};
}

// Any real number is a hue: whole turns are taken off. Each channel is a piecewise linear function of the turn.
void write_hsv(const HueSaturationValue& color, float* pixel) {
  const float turn = (color.hue - std::floor(color.hue)) * 6;
  const float parts[3] = {std::clamp(std::abs(turn - 3) - 1, 0.0F, 1.0F),
                          std::clamp(2 - std::abs(turn - 2), 0.0F, 1.0F),
                          std::clamp(2 - std::abs(turn - 4), 0.0F, 1.0F)};
  for (int channel = 0; channel < 3; ++channel) {
    pixel[channel] = color.value * (1 - color.saturation + color.saturation * parts[channel]);
  }
}

// Gray pixels stay as they are, since their saturation is 0.
void move_hue(const Pixels& pixels, float turns) {
  for_each_color(pixels, [&](float* pixel) {
    HueSaturationValue color = hsv_of(pixel);
    color.hue += turns;
    write_hsv(color, pixel);
  });
}

void scale_saturation(const Pixels& pixels, float factor) {
  // The small number is that of Keras. It makes the largest factor a number at all.
  const float scale = factor / (1 - factor + 1e-7F);
  for_each_color(pixels, [&](float* pixel) {
    HueSaturationValue color = hsv_of(pixel);
    color.saturation = std::clamp(color.saturation * scale, 0.0F, 1.0F);
    write_hsv(color, pixel);
  });
}

// A range from 0 to 0 leaves a change out, as the header says. So a jitter cannot ask for a saturation of exactly 0,
// which would be gray.
bool is_set(const DrawnRange& range) {
  return range.least != 0 || range.most != 0;
}

// The order is part of what the change means. A change that is left out draws nothing, so another option may change
// what the ones after it draw.
void jitter(const ColorJitterOptions& options, const Pixels& pixels, Random& random) {
  if (is_set(options.brightness)) {
    const float added = pixels.most * drawn_from(options.brightness, random);
    for (float& value : pixels.values) value += added;
    clamp_pixels(pixels);
  }
  if (is_set(options.contrast)) {
    change_contrast(pixels.values, pixels.channels(), 1 + drawn_from(options.contrast, random));
    clamp_pixels(pixels);
  }
  if (is_set(options.saturation)) scale_saturation(pixels, drawn_from(options.saturation, random));
  if (is_set(options.hue)) move_hue(pixels, drawn_from(options.hue, random));
}

}  // namespace

PictureChange random_grayscale(float probability) {
  check_number("random_grayscale", "probability", probability, 0, 1);
  return change_of_pixels({.name = "random_grayscale",
                           .options = fmt::format("{}", probability),
                           .needs_colors = true,
                           .apply = [probability](const Pixels& pixels, Random& random) {
                             if (random.uniform() < probability) blend_with_gray(pixels, 1);
                           }});
}

PictureChange random_color_degeneration(DrawnRange factor, float max_value) {
  check_range("random_color_degeneration", "factor", factor, 0, 1);
  return change_of_pixels({.name = "random_color_degeneration",
                           .options = text_of(factor),
                           .needs_colors = true,
                           .max_value = max_value,
                           .apply = [factor](const Pixels& pixels, Random& random) {
                             blend_with_gray(pixels, drawn_from(factor, random));
                             clamp_pixels(pixels);
                           }});
}

PictureChange random_hue(DrawnRange turns, float max_value) {
  check_range("random_hue", "turns", turns, -0.5F, 0.5F);
  return change_of_pixels({.name = "random_hue",
                           .options = text_of(turns),
                           .needs_colors = true,
                           .max_value = max_value,
                           .apply = [turns](const Pixels& pixels, Random& random) {
                             move_hue(pixels, drawn_from(turns, random));
                             clamp_pixels(pixels);
                           }});
}

PictureChange random_saturation(DrawnRange factor, float max_value) {
  check_range("random_saturation", "factor", factor, 0, 1);
  return change_of_pixels({.name = "random_saturation",
                           .options = text_of(factor),
                           .needs_colors = true,
                           .max_value = max_value,
                           .apply = [factor](const Pixels& pixels, Random& random) {
                             scale_saturation(pixels, drawn_from(factor, random));
                           }});
}

PictureChange random_color_jitter(const ColorJitterOptions& options) {
  const char* const name = "random_color_jitter";
  check_range(name, "brightness", options.brightness, -1, 1);
  check_range(name, "contrast", options.contrast, -1, 1);
  check_range(name, "saturation", options.saturation, 0, 1);
  check_range(name, "hue", options.hue, -0.5F, 0.5F);
  const std::string text = fmt::format("brightness {}, contrast {}, saturation {}, hue {}", text_of(options.brightness),
                                       text_of(options.contrast), text_of(options.saturation), text_of(options.hue));
  return change_of_pixels(
      {.name = name,
       .options = text,
       .needs_colors = true,
       .max_value = options.max_value,
       .apply = [options](const Pixels& pixels, Random& random) { jitter(options, pixels, random); }});
}

}  // namespace holdfast
