// Draws are made in one order, and only for options that are set. How many there are depends on the options alone,
// never on the picture or on an earlier draw, so a sample is a function of (seed, epoch, position). See
// docs/decisions/pictures.md.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/pictures/picture_arrays.h"
#include "data/pictures/picture_motion.h"
#include "holdfast/base/error.h"
#include "holdfast/data/picture_changes.h"

namespace holdfast {
namespace {

// Options by name: those that are numbers, and the largest value of each.
struct AugmentRange {
  std::string_view name;
  float AugmentOptions::*value;
  float most;
};

// The order is that of names in descriptions, which runs compare when they resume: never sort it. A zoom of 1 would
// show nothing of a picture, so it ends below.
constexpr AugmentRange kRanges[] = {{"rotate", &AugmentOptions::rotate, 1},
                                    {"shift_rows", &AugmentOptions::shift_rows, 1},
                                    {"shift_columns", &AugmentOptions::shift_columns, 1},
                                    {"zoom", &AugmentOptions::zoom, 0.99F},
                                    {"brightness", &AugmentOptions::brightness, 1},
                                    {"contrast", &AugmentOptions::contrast, 1},
                                    {"cutout", &AugmentOptions::cutout, 1}};

void check_options(const AugmentOptions& options) {
  for (const AugmentRange& range : kRanges) {
    const float value = options.*range.value;
    // A NaN is not within the range.
    if (value >= 0 && value <= range.most) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("augment(): {} is 0 to {}, not {}", range.name, range.most, value));
  }
  if (!(options.max_value > 0 && std::isfinite(options.max_value))) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("augment(): max_value is a finite number above 0, not {}", options.max_value));
  }
}

std::string name_of(const AugmentOptions& options) {
  std::string text = fmt::format("augment flip {}, edge {}, max_value {}", static_cast<int>(options.flip),
                                 static_cast<int>(options.edge), options.max_value);
  for (const AugmentRange& range : kRanges) {
    // What is off is left out of the name, so an option that is added later leaves
    // the names of present runs as they are.
    if (options.*range.value != 0) text += fmt::format(", {} {}", range.name, options.*range.value);
  }
  return text;
}

// Uniform between -most and most.
float drawn_between(float most, Random& random) {
  return most == 0 ? 0 : most * (2 * random.uniform() - 1);
}

bool drawn_flip(const AugmentOptions& options, Flip direction, Random& random) {
  // A flip that is off draws nothing, like a range of 0 above.
  if (options.flip != direction && options.flip != Flip::both) return false;
  return random.uniform() < 0.5F;
}

// The order of these lines is the order of the draws, which the bits of present runs depend on.
PictureMotion drawn_motion(const AugmentOptions& options, Random& random) {
  PictureMotion motion{.edge = options.edge};
  motion.flips_columns = drawn_flip(options, Flip::horizontal, random);
  motion.flips_rows = drawn_flip(options, Flip::vertical, random);
  motion.turns = drawn_between(options.rotate, random);
  motion.down = drawn_between(options.shift_rows, random);
  motion.right = drawn_between(options.shift_columns, random);
  motion.shown = 1 + drawn_between(options.zoom, random);
  return motion;
}

bool moves(const PictureMotion& motion) {
  return motion.flips_columns || motion.flips_rows || motion.turns != 0 || motion.down != 0 || motion.right != 0 ||
         motion.shown != 1;
}

// The center is any pixel with the same probability, as in the paper that the header names. So the part of the square
// that lies outside is lost, and less than `part` may be cut at the edges.
void cut_out(std::span<float> pixels, const Shape& shape, float part, Random& random) {
  const auto side = static_cast<std::int64_t>(std::lround(part * static_cast<float>(std::min(shape[0], shape[1]))));
  const auto begin = [&](std::int64_t extent) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(extent))) - side / 2;
  };
  const std::int64_t first_row = begin(shape[0]);
  const std::int64_t first_column = begin(shape[1]);
  const std::int64_t left = std::max<std::int64_t>(0, first_column);
  const std::int64_t right = std::min(shape[1], first_column + side);
  if (left >= right) return;
  for (std::int64_t row = std::max<std::int64_t>(0, first_row); row < std::min(shape[0], first_row + side); ++row) {
    std::fill_n(pixels.begin() + (row * shape[1] + left) * shape[2], (right - left) * shape[2], 0.0F);
  }
}

// Changes of pixels in their places, after the motion.
// Contrast comes first, with the mean of the moved picture, then brightness. Values are cut once, after both: cutting
// in between would lose what brightness brings back.
void change_pixels(const AugmentOptions& options, std::span<float> pixels, const ArraySpec& array, Random& random) {
  const Shape& shape = array.shape;
  const float most = array.dtype == DType::u8 ? 255.0F : options.max_value;
  if (options.contrast > 0) {
    change_contrast(pixels, static_cast<std::size_t>(shape[2]), 1 + drawn_between(options.contrast, random));
  }
  if (options.brightness > 0) {
    const float added = most * drawn_between(options.brightness, random);
    for (float& pixel : pixels) pixel += added;
  }
  if (options.contrast > 0 || options.brightness > 0) {
    for (float& pixel : pixels) pixel = std::clamp(pixel, 0.0F, most);
  }
  if (options.cutout > 0) cut_out(pixels, shape, options.cutout, random);
}

void augment_picture(const AugmentOptions& options, const ArrayRow& from, const ArrayRow& into, Random& random) {
  const ArraySpec& array = from.layout().arrays()[0];
  const Shape& shape = array.shape;
  // Drawn before pixels are looked at, so floats and bytes draw the same.
  const PictureMotion motion = drawn_motion(options, random);
  const auto augment_floats = [&](std::span<const float> pixels, std::span<float> result) {
    if (moves(motion)) {
      move_picture(pixels, shape[0], shape[1], shape[2], motion, result);
    } else {
      std::ranges::copy(pixels, result.begin());
    }
    change_pixels(options, result, array, random);
  };
  // Floats go from row to row. Bytes are changed as floats and rounded once, at the end.
  if (array.dtype == DType::f32) return augment_floats(from.elements<float>(0), into.elements<float>(0));
  const std::vector<float> pixels = floats_of(from);
  std::vector<float> result(pixels.size());
  augment_floats(pixels, result);
  write_floats(result, into);
}

}  // namespace

// The mean is summed in double: in f32 the pixels of a large picture would stop to count. Each channel has its own.
void change_contrast(std::span<float> pixels, std::size_t channels, float factor) {
  for (std::size_t channel = 0; channel < channels; ++channel) {
    double sum = 0;
    for (std::size_t i = channel; i < pixels.size(); i += channels) sum += static_cast<double>(pixels[i]);
    const auto mean = static_cast<float>(sum / static_cast<double>(pixels.size() / channels));
    for (std::size_t i = channel; i < pixels.size(); i += channels) pixels[i] = (pixels[i] - mean) * factor + mean;
  }
}

PictureChange augment(const AugmentOptions& options) {
  check_options(options);
  const auto output = [](const ArraySpec& input) {
    check_picture("augment", input);
    return input;
  };
  const auto apply = [options](const ArrayRow& from, const ArrayRow& into, Random& random) {
    augment_picture(options, from, into, random);
  };
  return {.name = name_of(options), .output = output, .apply = apply, .draws = true};
}

}  // namespace holdfast
