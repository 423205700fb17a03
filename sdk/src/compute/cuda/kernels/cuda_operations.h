#pragma once

// Makes the operations of a CUDA device; each has its own source file. The context must outlive them. The caller must
// hold the stream lock.

#include <memory>

#include "compute/backend.h"
#include "compute/cuda/kernels/matrix_precision.h"
#include "compute/cuda/runtime/cuda_context.h"

namespace holdfast::compute {

std::unique_ptr<DenseOperation> make_cuda_dense(CudaContext& context, Precision precision, const DenseShape& shape,
                                                Use use);
std::unique_ptr<BatchedProductOperation> make_cuda_batched_product(CudaContext& context, Precision precision,
                                                                   const BatchedProductShape& shape);
std::unique_ptr<ConvolutionOperation> make_cuda_convolution(CudaContext& context, Precision precision,
                                                            const ConvolutionShape& shape, Use use);
std::unique_ptr<PoolingOperation> make_cuda_pooling(CudaContext& context, const PoolingShape& shape, Use use);
std::unique_ptr<ActivationOperation> make_cuda_activation(CudaContext& context, const ActivationShape& shape);
std::unique_ptr<BatchNormalizationOperation> make_cuda_batch_normalization(CudaContext& context,
                                                                           const BatchNormalizationShape& shape,
                                                                           Use use);

}  // namespace holdfast::compute
