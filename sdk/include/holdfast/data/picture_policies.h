#pragma once

// Augmentation by policies, which choose among many changes of a picture for Dataset::map():
//
//   read_pictures("flowers", {.height = 64, .width = 64}).map(rand_augment({.changes = 2, .strength = 0.4F}))
//
// They choose among the eleven changes that Keras 3 lists: shear, shift, rotation, brightness, color degeneration (with
// three channels only), contrast, sharpness, posterization, solarization, auto contrast and equalization. Which ones,
// and how much, is drawn for each sample as a function of (seed, epoch, sample). Pixels are f32 from 0 to `max_value`,
// or u8 from 0 to 255, where `max_value` has no influence; size and type stay.
//
// Each function throws Error{invalid_argument} for numbers that can never work, and map() for samples that are not a
// picture.

#include "holdfast/data/picture_changes.h"

namespace holdfast {

// What rand_augment() does to each sample.
struct RandAugmentOptions {
  int changes = 2;        // one after another, each drawn from all, so one may come twice; 1 to 100
  float strength = 0.5F;  // the largest factor of a change, 0 to 1; shifts, turns and brightness go both ways
  float max_value = 1;    // of f32 pixels
};

// Several changes of one strength (Cubuk et al.: "RandAugment: Practical automated data augmentation with a reduced
// search space", 2020; keras.layers.RandAugment).
PictureChange rand_augment(const RandAugmentOptions& options = {});

// What aug_mix() does to each sample.
struct AugMixOptions {
  int chains = 3;         // of changes, each of which begins with the picture itself; 1 to 100
  int depth = 3;          // of a chain: so often a change is drawn, or none with the same probability; 1 to 100
  float strength = 0.3F;  // as that of rand_augment()
  float alpha = 1;        // of the distributions below; above 0, at most 1000
  float max_value = 1;    // of f32 pixels
};

// share * picture + (1 - share) * sum of weight_i * chain_i. The weights are drawn from a Dirichlet distribution with
// all parameters `alpha`, and the share from a beta distribution with both parameters `alpha` (Hendrycks et al.:
// "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty", 2020; keras.layers.AugMix).
PictureChange aug_mix(const AugMixOptions& options = {});

}  // namespace holdfast
