#pragma once

// Changes of the colors and tones of pictures for Dataset::map(), next to those of holdfast/data/picture_changes.h:
//
//   data.map(random_hue({-0.1F, 0.1F})).map(random_sharpness({0.3F, 0.7F})).map(random_grayscale(0.1F))
//
// Each one is computed pixel by pixel as the layer of Keras 3 that its comment names, and is compared with it. Pixels
// are f32 from 0 to `max_value`, or u8 from 0 to 255, where `max_value` has no influence. The size and the type of a
// picture stay. What is drawn for a sample is a function of (seed, epoch, sample), and the name of a change holds all
// of its options, as in picture_changes.h. Changes of colors take three channels: red, green and blue; all others take
// any number. Changes of hue and saturation take NaN and minus infinity for 0, and infinity for the largest number.
//
// Each function throws Error{invalid_argument} for numbers that can never work, and map() for samples that are not such
// a picture.

#include "holdfast/data/picture_changes.h"

namespace holdfast {

// A number that is drawn for each sample, all between the two equally likely. Equal ends give that number.
struct DrawnRange {
  float least = 0;  // the smaller end
  float most = 0;   // the larger end
};

// Gray in all channels, 0.2989 red + 0.587 green + 0.114 blue, with this probability (RandomGrayscale).
PictureChange random_grayscale(float probability = 0.5F);

// pixel + factor * (gray - pixel), factor from 0 to 1: 1 is gray (RandomColorDegeneration).
PictureChange random_color_degeneration(DrawnRange factor, float max_value = 1);

// Moves the hue by so many turns of the circle of colors, -0.5 to 0.5. RandomHue(f) of Keras draws from -f / 2 to f
// / 2.
PictureChange random_hue(DrawnRange turns, float max_value = 1);

// Multiplies the saturation by factor / (1 - factor), factor from 0 to 1: 0 is gray, 0.5 changes nothing, 1 is the full
// color (RandomSaturation).
PictureChange random_saturation(DrawnRange factor, float max_value = 1);

// What random_color_jitter() draws from. A range from 0 to 0 leaves a change out.
struct ColorJitterOptions {
  DrawnRange brightness{};  // adds so much of max_value, -1 to 1
  DrawnRange contrast{};    // (pixel - mean of the channel) * (1 + number) + mean, -1 to 1
  DrawnRange saturation{};  // as random_saturation()
  DrawnRange hue{};         // as random_hue()
  float max_value = 1;      // of f32 pixels
};

// Brightness, contrast, saturation and hue, in this order (RandomColorJitter). Pixels are cut to 0 to max_value after
// brightness and after contrast.
PictureChange random_color_jitter(const ColorJitterOptions& options);

// max_value - pixel, with this probability (RandomInvert).
PictureChange random_invert(float probability = 0.5F, float max_value = 1);

// Keeps that many of the 8 bits of a pixel, 1 to 8; the number is drawn, both ends included (RandomPosterization).
PictureChange random_posterization(int least_bits, int most_bits, float max_value = 1);

// What solarization() draws from, in parts of max_value: 0 to 1.
struct SolarizationOptions {
  DrawnRange addition{};       // is added first
  DrawnRange threshold{1, 1};  // pixels from here on are inverted
  float max_value = 1;         // of f32 pixels
};

// Adds, and inverts bright pixels (Solarization).
PictureChange solarization(const SolarizationOptions& options);

// Stretches each channel to 0 to max_value; a channel of one value stays (AutoContrast). Draws nothing.
PictureChange auto_contrast(float max_value = 1);

// Gives each channel a flat histogram of 256 bins; a channel with pixels in one bin stays (Equalization). Draws
// nothing.
PictureChange equalization(float max_value = 1);

// pixel + (1 - 2 * factor) * (smooth - pixel), factor from 0 to 1: 0 is smooth, 0.5 changes nothing, 1 is sharp. Smooth
// is the mean of 3 x 3 pixels, in which the middle counts 5 and its neighbours 1, with zeros around the picture
// (RandomSharpness).
PictureChange random_sharpness(DrawnRange factor, float max_value = 1);

// How random_gaussian_blur() smooths.
struct GaussianBlurOptions {
  float probability = 1;   // of a sample that is blurred
  int height = 3;          // of the part of the picture that counts for a pixel, odd
  int width = 3;           // as height
  DrawnRange sigma{1, 1};  // above 0, in pixels; drawn for the rows and for the columns
  float max_value = 1;     // of f32 pixels
};

// A mean of the pixels nearby, weighted by a normal distribution, with zeros around the picture (RandomGaussianBlur).
PictureChange random_gaussian_blur(const GaussianBlurOptions& options = {});

}  // namespace holdfast
