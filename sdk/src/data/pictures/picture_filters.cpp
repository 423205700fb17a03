// Changes in which a pixel depends on its neighbours. There are zeros around a picture, as in Keras. Sums run over rows
// and then columns, so that bits are the same everywhere.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/pictures/pixel_change.h"
#include "holdfast/base/error.h"
#include "holdfast/data/picture_colors.h"

namespace holdfast {
namespace {

// Each pixel takes a sum over height * width neighbours, so larger sides would take far too long.
constexpr int kMostBlurSide = 99;

// Weights [height, width], with odd sides.
struct PixelKernel {
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::vector<float> weights;
};

// The weighted sum around one pixel and channel.
float sum_around(const Pixels& pixels, std::span<const float> from, const PixelKernel& kernel, std::int64_t row,
                 std::int64_t column, std::int64_t channel) {
  const Shape& shape = pixels.shape;
  float sum = 0;
  for (std::int64_t i = 0; i < kernel.height; ++i) {
    const std::int64_t y = row + i - kernel.height / 2;
    // A pixel outside is 0 and adds nothing. The sum of the weights is not changed for it, so edges become darker, as
    // in Keras.
    if (y < 0 || y >= shape[0]) continue;
    for (std::int64_t j = 0; j < kernel.width; ++j) {
      const std::int64_t x = column + j - kernel.width / 2;
      if (x < 0 || x >= shape[1]) continue;
      sum += kernel.weights[static_cast<std::size_t>(i * kernel.width + j)] *
             from[static_cast<std::size_t>((y * shape[1] + x) * shape[2] + channel)];
    }
  }
  return sum;
}

// Calls write(value, sum) for each pixel and channel with the sum around it in the picture as it was.
template <typename Write>
void filter_pixels(const Pixels& pixels, const PixelKernel& kernel, const Write& write) {
  // A copy, because results are written over the pixels that later sums need.
  const std::vector<float> from(pixels.values.begin(), pixels.values.end());
  std::size_t at = 0;
  for (std::int64_t row = 0; row < pixels.shape[0]; ++row) {
    for (std::int64_t column = 0; column < pixels.shape[1]; ++column) {
      for (std::int64_t channel = 0; channel < pixels.shape[2]; ++channel, ++at) {
        write(pixels.values[at], sum_around(pixels, from, kernel, row, column, channel));
      }
    }
  }
}

void sharpen(const Pixels& pixels, float factor) {
  PixelKernel kernel{.height = 3, .width = 3, .weights = std::vector<float>(9, 1.0F / 13)};
  kernel.weights[4] = 5.0F / 13;
  filter_pixels(pixels, kernel, [&](float& value, float smooth) { value += (1 - 2 * factor) * (smooth - value); });
  clamp_pixels(pixels);
}

// The normal distribution at whole distances from the middle, divided by the sum. The constant before it would cancel.
std::vector<float> normal_weights(int size, float sigma) {
  std::vector<float> weights;
  float sum = 0;
  for (int i = 0; i < size; ++i) {
    const float at = (static_cast<float>(i) - static_cast<float>(size - 1) / 2) / sigma;
    weights.push_back(std::exp(-0.5F * at * at));
    sum += weights.back();
  }
  for (float& weight : weights) weight /= sum;
  return weights;
}

void blur(const GaussianBlurOptions& options, const Pixels& pixels, Random& random) {
  // Drawn in any case, so that later draws do not depend on the first one.
  const bool is_blurred = random.uniform() < options.probability;
  const float row_sigma = drawn_from(options.sigma, random);
  const float column_sigma = drawn_from(options.sigma, random);
  if (!is_blurred) return;
  const std::vector<float> rows = normal_weights(options.height, row_sigma);
  const std::vector<float> columns = normal_weights(options.width, column_sigma);
  // The product of both weights, in one pass. Two passes would be faster, and round otherwise than Keras.
  PixelKernel kernel{.height = options.height, .width = options.width, .weights = {}};
  for (const float row : rows) {
    for (const float column : columns) kernel.weights.push_back(row * column);
  }
  filter_pixels(pixels, kernel, [](float& value, float sum) { value = sum; });
  clamp_pixels(pixels);
}

}  // namespace

PictureChange random_sharpness(DrawnRange factor, float max_value) {
  check_range("random_sharpness", "factor", factor, 0, 1);
  return change_of_pixels(
      {.name = "random_sharpness",
       .options = text_of(factor),
       .max_value = max_value,
       .apply = [factor](const Pixels& pixels, Random& random) { sharpen(pixels, drawn_from(factor, random)); }});
}

PictureChange random_gaussian_blur(const GaussianBlurOptions& options) {
  const char* const name = "random_gaussian_blur";
  check_number(name, "probability", options.probability, 0, 1);
  check_range(name, "sigma", options.sigma, 1e-6F, 1000);
  for (const int side : {options.height, options.width}) {
    if (side >= 1 && side <= kMostBlurSide && side % 2 == 1) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}(): height and width are odd numbers from 1 to {}, not {}", name, kMostBlurSide, side));
  }
  return change_of_pixels(
      {.name = name,
       .options = fmt::format("{}, {} x {}, sigma {}", options.probability, options.height, options.width,
                              text_of(options.sigma)),
       .max_value = options.max_value,
       .apply = [options](const Pixels& pixels, Random& random) { blur(options, pixels, random); }});
}

}  // namespace holdfast
