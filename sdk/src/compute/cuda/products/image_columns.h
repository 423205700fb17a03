#pragma once

// Makes the column matrix of images, and adds it back into images. All calls only queue, and name `operation` in
// errors.

#include <cuda_runtime_api.h>

#include <string>

#include "compute/arithmetic/convolution.h"

namespace holdfast::compute {

// For `samples` images, at most those of the plan. `columns` becomes [windows of all images, elements of a window].
void make_columns(cudaStream_t stream, const std::string& operation, const ConvolutionPlan& plan, std::int64_t samples,
                  const float* input, float* columns);
void gather_column_gradients(cudaStream_t stream, const std::string& operation, const ConvolutionPlan& plan,
                             std::int64_t samples, const float* column_gradient, float* input_gradient);

}  // namespace holdfast::compute
