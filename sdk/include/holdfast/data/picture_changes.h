#pragma once

// Changes of pictures for Dataset::map(): a size for all, and augmentation, which shows a model each picture in another
// way in each epoch.
//
//   const Dataset train = read_pictures("flowers", {.height = 72, .width = 72})
//                             .map(random_crop(64, 64))
//                             .map(augment({.flip = Flip::horizontal, .rotate = 0.05F, .contrast = 0.2F}));
//   const Dataset test = read_pictures("flowers.test", {.height = 72, .width = 72}).map(center_crop(64, 64));
//
// What is drawn for a sample is a function of (seed, epoch, sample), like all draws of map(): the same on any number of
// replicas and after a restart. The description of the data holds every option, so a run that resumes with others is
// refused.
//
// A change takes samples with one input [height, width, channels] of f32 or u8, from any source. map() throws
// Error{invalid_argument} for others, and each function below for numbers that can never work.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/data/picture_change.h"
#include "holdfast/data/pictures.h"

namespace holdfast {

// Pictures of another size.
PictureChange resize(std::int64_t height, std::int64_t width,
                     PictureInterpolation interpolation = PictureInterpolation::bilinear);

// The middle of a picture that is at least so large. If the margins are odd, the smaller one comes first.
PictureChange center_crop(std::int64_t height, std::int64_t width);

// How random_crop() widens a picture first.
struct RandomCropOptions {
  std::int64_t padding = 0;  // rows and columns of zeros that are added on each side first
};

// A part of that size at a place that is drawn, all places equally likely.
PictureChange random_crop(std::int64_t height, std::int64_t width, RandomCropOptions options = {});

// (value - mean) / deviation, with a number for each channel or one for all. The result is f32. u8 is divided by 255
// first, so both kinds of samples take the same numbers.
//
//   data.map(standardize({0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}))
PictureChange standardize(std::vector<float> means, std::vector<float> deviations);

// Which sides of a picture change places, each in half of the samples.
enum class Flip {
  none,        // neither
  horizontal,  // left and right
  vertical,    // top and bottom
  both,        // each of them, independently
};

// What lies beyond the edges of a picture that is turned or moved.
enum class PictureEdge {
  reflect,   // the picture, mirrored at its edges: c b a | a b c | c b a
  repeat,    // the pixels of the edge: a a a | a b c | c c c
  constant,  // zeros
};

// Draws are uniform in the ranges below, and independent of each other. What is 0 or none is left out.
struct AugmentOptions {
  Flip flip = Flip::none;                   // with probability 1/2; `both` draws for each direction
  float rotate = 0;                         // by -rotate to rotate full turns, about the center; 0.1 are 36 degrees
  float shift_rows = 0;                     // down by -shift_rows to shift_rows heights
  float shift_columns = 0;                  // to the right by -shift_columns to shift_columns widths
  float zoom = 0;                           // the part that is shown has 1 - zoom to 1 + zoom of each side; below 1
  PictureEdge edge = PictureEdge::reflect;  // what lies beyond the edges
  float brightness = 0;                     // adds -brightness to brightness times max_value
  float contrast = 0;  // (value - mean) * factor + mean, factor 1 - contrast to 1 + contrast, mean of the channel
  // Fills a square with zeros whose side is this part of the shorter side of the picture. Its center is any pixel, so a
  // part of it may lie outside (DeVries and Taylor: "Improved Regularization of CNNs with Cutout", 2017).
  float cutout = 0;
  float max_value = 1;  // of f32 pixels; values are cut to 0 to max_value after brightness and contrast. u8 has 255.
};

// Flip, rotation, zoom and shift are one motion, so pixels are interpolated only once (bilinear). Then come contrast,
// brightness and cutout.
PictureChange augment(const AugmentOptions& options);

}  // namespace holdfast
