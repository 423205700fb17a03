#pragma once

// The options of convolutions, with Keras's names, meanings and defaults. `Extent` is std::int64_t for layers along one
// axis, Extent2D for images and Extent3D for volumes.
//
//   Conv2D{16, 3, {.padding = Padding::same, .dilation_rate = 2, .groups = 4}}
//
// A dilation above 1 goes with strides of 1 only, as in Keras. Padding::causal is for layers along one axis. Each layer
// says which of these it refuses, and when.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/compute/padding.h"
#include "holdfast/nn/activation_function.h"
#include "holdfast/nn/constraint.h"
#include "holdfast/nn/initializer.h"
#include "holdfast/nn/regularizer.h"

namespace holdfast {

// Options of Conv1D, Conv2D and Conv3D. `Extent` has a number for each spatial axis.
template <class Extent>
struct ConvolutionLayerOptions {
  // Positions from one window to the next.
  Extent strides = 1;
  // How windows treat the ends of an axis, and how many there are; see holdfast/compute/padding.h.
  Padding padding = Padding::valid;
  // The distance of a window's elements, 1 if they are neighbours.
  Extent dilation_rate = 1;
  // Channels and filters are divided evenly into groups; a filter sees the channels of its group only.
  std::int64_t groups = 1;
  // Applied to the sums of products and bias.
  ActivationFunction activation = Activation::linear;
  // Whether there is an array with a number for each filter. Without it, savepoints lack the array, too.
  bool use_bias = true;
  // The initial values of the weights; see initializer.h. As in Keras, the fans of the kernel are its window times the
  // channels of a group, and its window times all filters.
  Initializer kernel_initializer = Initializer::glorot_uniform();
  Initializer bias_initializer = Initializer::zeros();
  // Penalties on their size, none by default; see regularizer.h.
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  // Bounds, none by default; see constraint.h.
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};

// For Holdfast's own use: what a layer keeps of its options. Lists have a number for each spatial axis, the first axis
// of a sample first.
struct ConvolutionSettings {
  std::int64_t filters = 1;               // channels of the output
  std::vector<std::int64_t> kernel_size;  // of the window
  std::vector<std::int64_t> strides;      // of the window
  // At the ends of each axis.
  Padding padding = Padding::valid;
  std::vector<std::int64_t> dilation_rate;             // of the elements of the kernel
  std::int64_t groups = 1;                             // of channels, which are convolved apart
  ActivationFunction activation = Activation::linear;  // after the bias
  bool use_bias = true;
  // As in ConvolutionLayerOptions, for the arrays of the layer:
  Initializer kernel_initializer = Initializer::glorot_uniform();
  Initializer bias_initializer = Initializer::zeros();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
};

}  // namespace holdfast
