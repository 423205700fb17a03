#pragma once

// The two ways to compute a convolution on a CUDA device. A pass uses cuDNN if that has an engine which gives the same
// bits each time, and else a product of matrices. The choice depends on the shape, the device and cuDNN's version.

#include <memory>
#include <string>

#include "compute/backend.h"
#include "compute/cuda/kernels/matrix_precision.h"
#include "compute/cuda/runtime/cuda_context.h"

namespace holdfast::compute {

struct ConvolutionPasses {
  bool forward = false;
  bool backward_input = false;
  bool backward_weights = false;
};

// "PASS of convolution [..] x [..], strides [..], padding same"
std::string describe_convolution(const std::string& pass, const ConvolutionShape& shape);

// Convolution by matrix products of cuBLASLt; for any shape.
std::unique_ptr<ConvolutionOperation> make_columns_convolution(CudaContext& context, Precision precision,
                                                               const ConvolutionShape& shape,
                                                               const ConvolutionPasses& passes);

}  // namespace holdfast::compute
