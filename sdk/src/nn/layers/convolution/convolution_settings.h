#pragma once

// What Conv1D, Conv2D and Conv3D share: checks, files, and the layer itself, for any number of spatial axes.

#include "holdfast/nn/convolution_options.h"
#include "holdfast/nn/layer_builder.h"
#include "nn/layers/convolution/spatial_extents.h"
#include "nn/operations/checks.h"

namespace holdfast {

// The options of a class with a list for each extent, so that all further code is the same for one to three axes.
template <class Extent>
ConvolutionSettings settings_of(std::int64_t filters, const Extent& kernel_size,
                                const ConvolutionLayerOptions<Extent>& options) {
  return {.filters = filters,
          .kernel_size = extents_of(kernel_size),
          .strides = extents_of(options.strides),
          .padding = options.padding,
          .dilation_rate = extents_of(options.dilation_rate),
          .groups = options.groups,
          .activation = options.activation,
          .use_bias = options.use_bias,
          .kernel_initializer = options.kernel_initializer,
          .bias_initializer = options.bias_initializer,
          .kernel_regularizer = options.kernel_regularizer,
          .bias_regularizer = options.bias_regularizer,
          .kernel_constraint = options.kernel_constraint,
          .bias_constraint = options.bias_constraint};
}

// Throws Error{invalid_argument} that names `kind` if the layer cannot be made.
void check_convolution(std::string_view kind, const ConvolutionSettings& settings);
// The same for the windows of any layer that slides a kernel.
void check_kernel_windows(std::string_view kind, const SlidingWindows& windows);

// Asks the builder for kernel and bias. Throws Error{invalid_argument} for an input that the windows or groups do not
// fit.
std::vector<Value> build_convolution(LayerBuilder& builder, std::span<const Value> inputs,
                                     const ConvolutionSettings& settings);

// Dilation and groups are written only where they are not 1: files are older than these options.
void write_convolution(ConfigWriter& config, const ConvolutionSettings& settings);
// The reader throws Error{invalid_file or invalid_argument} for lists of another length and for unknown names.
ConvolutionSettings read_convolution(ConfigReader& config, std::size_t spatial_axes);

}  // namespace holdfast
