// Changes of size and of numbers. Each one names itself by all of its options, since a run that resumes must have the
// same ones. augment() is in augment.cpp. docs/decisions/pictures.md

#include "holdfast/data/picture_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/pictures/picture_arrays.h"
#include "data/pictures/resize.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// Larger sides are mistakes. With this limit, products of two sides and the channels stay far below 63 bits.
constexpr std::int64_t kMostChangedSide = 1 << 14;

void check_size(std::string_view change, std::int64_t height, std::int64_t width) {
  if (height >= 1 && width >= 1 && height <= kMostChangedSide && width <= kMostChangedSide) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}(): sides have 1 to {} pixels, so {} x {} cannot work",
                                                       change, kMostChangedSide, height, width));
}

// The input with another height and width.
ArraySpec resized(const ArraySpec& input, std::int64_t height, std::int64_t width) {
  return {.name = input.name, .shape = Shape{height, width, input.shape[2]}, .dtype = input.dtype};
}

// Checked once, when map() is written: all samples of a data set have one size.
ArraySpec cropped(std::string_view change, const ArraySpec& input, std::int64_t height, std::int64_t width,
                  std::int64_t padding) {
  check_picture(change, input);
  if (height > input.shape[0] + 2 * padding || width > input.shape[1] + 2 * padding) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}(): {} x {} pixels cannot be cut out of samples of {}; crop less, or read larger pictures",
                    change, height, width, input.to_string()));
  }
  return resized(input, height, width);
}

// Copies the part of `from` that begins at a row and column, which may be negative; zeros lie around the picture.
template <typename Pixel>
void copy_part(const Shape& from_shape, std::span<const Pixel> from, std::int64_t first_row, std::int64_t first_column,
               const Shape& shape, std::span<Pixel> into) {
  const std::int64_t channels = shape[2];
  // The columns of the result that lie within the picture.
  // `begin` and `end` are the same for each row, so they are found once. If no column lies within, all rows stay zeros.
  const std::int64_t begin = std::max<std::int64_t>(0, -first_column);
  const std::int64_t end = std::min(shape[1], from_shape[1] - first_column);
  for (std::int64_t row = 0; row < shape[0]; ++row) {
    const std::span<Pixel> line = into.subspan(static_cast<std::size_t>(row * shape[1] * channels),
                                               static_cast<std::size_t>(shape[1] * channels));
    std::ranges::fill(line, Pixel{});
    const std::int64_t from_row = first_row + row;
    if (from_row < 0 || from_row >= from_shape[0] || begin >= end) continue;
    // The column first_column + begin is at least 0 here, also where first_column is not.
    const auto at = static_cast<std::size_t>((from_row * from_shape[1] + first_column + begin) * channels);
    std::ranges::copy(from.subspan(at, static_cast<std::size_t>((end - begin) * channels)),
                      line.begin() + begin * channels);
  }
}

// Crops keep the type of the picture, so the type of the result is that of both.
void copy_part(const ArrayRow& from, std::int64_t first_row, std::int64_t first_column, const ArrayRow& into) {
  const Shape& from_shape = from.layout().arrays()[0].shape;
  const Shape& shape = into.layout().arrays()[0].shape;
  if (into.layout().arrays()[0].dtype == DType::f32) {
    copy_part<float>(from_shape, from.elements<float>(0), first_row, first_column, shape, into.elements<float>(0));
  } else {
    copy_part<std::uint8_t>(from_shape, from.elements<std::uint8_t>(0), first_row, first_column, shape,
                            into.elements<std::uint8_t>(0));
  }
}

template <typename Pixel>
void resize_into(const Shape& from_shape, std::span<const Pixel> from, const Shape& shape,
                 PictureInterpolation interpolation, std::span<float> into) {
  resize_picture(PictureView<Pixel>{.pixels = from.data(),
                                    .height = from_shape[0],
                                    .width = from_shape[1],
                                    .channels = from_shape[2],
                                    .row_pixels = from_shape[1] * from_shape[2]},
                 shape[0], shape[1], interpolation, into);
}

void resize_row(const ArrayRow& from, PictureInterpolation interpolation, const ArrayRow& into) {
  const Shape& from_shape = from.layout().arrays()[0].shape;
  const ArraySpec& output = into.layout().arrays()[0];
  if (output.dtype == DType::f32) {
    resize_into<float>(from_shape, from.elements<float>(0), output.shape, interpolation, into.elements<float>(0));
    return;
  }
  // Sums are made in floats and rounded once. Rounding after each axis would lose half a step twice.
  std::vector<float> pixels(static_cast<std::size_t>(output.shape.element_count()));
  resize_into<std::uint8_t>(from_shape, from.elements<std::uint8_t>(0), output.shape, interpolation, pixels);
  std::ranges::transform(pixels, into.elements<std::uint8_t>(0).begin(), byte_of);
}

void check_statistics(const std::vector<float>& means, const std::vector<float>& deviations) {
  const auto is_finite = [](float value) { return std::isfinite(value); };
  const bool are_numbers = !means.empty() && means.size() == deviations.size() &&
                           std::ranges::all_of(means, is_finite) && std::ranges::all_of(deviations, is_finite) &&
                           std::ranges::all_of(deviations, [](float value) { return value > 0; });
  if (are_numbers) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("standardize() takes as many means as deviations, and deviations above 0; not {} and {}",
                          means, deviations));
}

}  // namespace

void check_picture(std::string_view change, const ArraySpec& input) {
  if (input.shape.rank() == 3 && (input.dtype == DType::f32 || input.dtype == DType::u8)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}() takes pictures of f32 or u8 [height, width, channels], and "
                          "samples have {}",
                          change, input.to_string()));
}

std::vector<float> floats_of(const ArrayRow& picture) {
  if (picture.layout().arrays()[0].dtype == DType::f32) {
    const std::span<float> pixels = picture.elements<float>(0);
    return {pixels.begin(), pixels.end()};
  }
  // Bytes become 0 to 255. A caller that wants another range scales them itself.
  const std::span<std::uint8_t> pixels = picture.elements<std::uint8_t>(0);
  return {pixels.begin(), pixels.end()};
}

void write_floats(std::span<const float> pixels, const ArrayRow& picture) {
  if (picture.layout().arrays()[0].dtype == DType::f32) {
    std::ranges::copy(pixels, picture.elements<float>(0).begin());
  } else {
    // Also cuts to 0 to 255, for changes that leave this range.
    std::ranges::transform(pixels, picture.elements<std::uint8_t>(0).begin(), byte_of);
  }
}

PictureChange resize(std::int64_t height, std::int64_t width, PictureInterpolation interpolation) {
  check_size("resize", height, width);
  const auto output = [=](const ArraySpec& input) {
    check_picture("resize", input);
    return resized(input, height, width);
  };
  const auto apply = [=](const ArrayRow& from, const ArrayRow& into, Random&) {
    resize_row(from, interpolation, into);
  };
  // The interpolation is a number in the name, which descriptions hold: the order of that enum must stay.
  return {.name = fmt::format("resize {} x {} by {}", height, width, static_cast<int>(interpolation)),
          .output = output,
          .apply = apply,
          .draws = false};
}

PictureChange center_crop(std::int64_t height, std::int64_t width) {
  check_size("center_crop", height, width);
  const auto output = [=](const ArraySpec& input) { return cropped("center_crop", input, height, width, 0); };
  const auto apply = [=](const ArrayRow& from, const ArrayRow& into, Random&) {
    const Shape& shape = from.layout().arrays()[0].shape;
    // If an odd number of rows or columns is cut off, one more of them is cut off at the end.
    copy_part(from, (shape[0] - height) / 2, (shape[1] - width) / 2, into);
  };
  return {.name = fmt::format("center_crop {} x {}", height, width), .output = output, .apply = apply, .draws = false};
}

PictureChange random_crop(std::int64_t height, std::int64_t width, RandomCropOptions options) {
  check_size("random_crop", height, width);
  const std::int64_t padding = options.padding;
  if (padding < 0 || padding > kMostChangedSide) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("random_crop(): the padding is 0 to {} pixels, not {}", kMostChangedSide, padding));
  }
  const auto output = [=](const ArraySpec& input) { return cropped("random_crop", input, height, width, padding); };
  const auto apply = [=](const ArrayRow& from, const ArrayRow& into, Random& random) {
    const Shape& shape = from.layout().arrays()[0].shape;
    const auto drawn = [&](std::int64_t side, std::int64_t cut) {
      // All places are equally likely, from `padding` pixels before the picture to as many after it.
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(side + 2 * padding - cut + 1))) -
             padding;
    };
    // The row is drawn before the column, as two statements: the order in which
    // arguments are computed is not fixed in C++.
    const std::int64_t row = drawn(shape[0], height);
    const std::int64_t column = drawn(shape[1], width);
    copy_part(from, row, column, into);
  };
  return {.name = fmt::format("random_crop {} x {}, padding {}", height, width, padding),
          .output = output,
          .apply = apply,
          .draws = true};
}

PictureChange standardize(std::vector<float> means, std::vector<float> deviations) {
  check_statistics(means, deviations);
  std::string name = fmt::format("standardize by {} and {}", means, deviations);
  const std::size_t numbers = means.size();
  const auto output = [=](const ArraySpec& input) -> ArraySpec {
    check_picture("standardize", input);
    if (numbers != 1 && std::cmp_not_equal(numbers, input.shape[2])) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("standardize() was given {} means for samples of {}; give one "
                              "for each channel, or one for all",
                              numbers, input.to_string()));
    }
    return {.name = input.name, .shape = input.shape, .dtype = DType::f32};
  };
  const auto apply = [means = std::move(means), deviations = std::move(deviations)](const ArrayRow& from,
                                                                                    const ArrayRow& into, Random&) {
    const std::vector<float> pixels = floats_of(from);
    // One number for all pixels, multiplied and not divided: the bits of present runs depend on it.
    const float scale = from.layout().arrays()[0].dtype == DType::u8 ? 1.0F / 255.0F : 1.0F;
    const std::span<float> features = into.elements<float>(0);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const std::size_t channel = i % means.size();  // one mean for all, or the last axis
      features[i] = (pixels[i] * scale - means[channel]) / deviations[channel];
    }
  };
  return {.name = std::move(name), .output = output, .apply = apply, .draws = false};
}

}  // namespace holdfast
