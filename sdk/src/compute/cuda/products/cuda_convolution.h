#pragma once

// The ways to compute a convolution on a CUDA device. A pass uses cuDNN if that has an engine which gives the same bits
// each time. Else it is a product of matrices, or a sum per element where there are groups, dilation or volumes. The
// choice depends on the shape, the device and cuDNN's version.

#include <memory>
#include <string>

#include "compute/backend.h"
#include "compute/convolution_axes.h"
#include "compute/cuda/kernels/matrix_precision.h"
#include "compute/cuda/runtime/cuda_context.h"

namespace holdfast::compute {

struct ConvolutionPasses {
  bool forward = false;
  bool backward_input = false;
  bool backward_weights = false;
};

// Convolution by matrix products of cuBLASLt; for plain shapes.
std::unique_ptr<ConvolutionOperation> make_columns_convolution(CudaContext& context, Precision precision,
                                                               const ConvolutionShape& shape,
                                                               const ConvolutionPasses& passes);

// Convolution by kernels of ours in which a thread sums one element; for any shape. Factors are f32.
std::unique_ptr<ConvolutionOperation> make_direct_convolution(CudaContext& context, const ConvolutionShape& shape,
                                                              const ConvolutionPasses& passes);

}  // namespace holdfast::compute
