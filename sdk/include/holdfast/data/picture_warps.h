#pragma once

// Changes of the shapes in pictures for Dataset::map(), next to rotation, shift and zoom of augment()
// (holdfast/data/picture_changes.h):
//
//   data.map(random_shear({.x = {0, 0.2F}})).map(random_perspective({.scale = 0.5F}))
//
// Each pixel of the result is interpolated (bilinear) at the point of the picture where the layer of Keras 3 that its
// comment names has it, and is compared with it. Size and type of a picture stay. What is drawn for a sample is a
// function of (seed, epoch, sample), and the name of a change holds all of its options.
//
// Each function throws Error{invalid_argument} for numbers that can never work, and map() for samples that are not a
// picture.

#include "holdfast/data/picture_changes.h"
#include "holdfast/data/picture_colors.h"

namespace holdfast {

// What random_shear() draws from.
struct ShearOptions {
  DrawnRange x{};                           // columns that a row moves to the left for each row below the first; 0 to 1
  DrawnRange y{};                           // rows that a column moves up for each column after the first; 0 to 1
  PictureEdge edge = PictureEdge::reflect;  // what lies beyond the edges
};

// Slants a picture: the result at (x, y), column and row, is the picture at (x + s y, y + t x), with s and t drawn from
// `x` and `y`. In half of the samples both point the other way (RandomShear).
PictureChange random_shear(const ShearOptions& options);

// What random_perspective() draws from.
struct PerspectiveOptions {
  float probability = 1;  // of a sample that is changed
  float scale = 1;        // a coordinate of a corner is multiplied by 1 - scale / 2 to 1 + scale / 2; 0 to 1
};

// Shows a picture from the side: its corners move, and straight lines stay straight (RandomPerspective). The
// coordinates of a corner count from the first pixel of the first row, so that corner stays. Zeros lie beyond the
// edges.
PictureChange random_perspective(const PerspectiveOptions& options = {});

}  // namespace holdfast
