#pragma once

// Makes the operations; each has its own source file. The context must outlive them.

#include <memory>

#include "compute/backend.h"
#include "compute/cpu/cpu_context.h"

namespace holdfast::compute {

std::unique_ptr<DenseOperation> make_cpu_dense(CpuContext& context, const DenseShape& shape, Use use);
std::unique_ptr<BatchedProductOperation> make_cpu_batched_product(CpuContext& context,
                                                                  const BatchedProductShape& shape);
// Whether some repeated products are those of make_cpu_packed_product(). It returns null for a shape that is not.
bool packs_products(const CpuContext& context);
std::unique_ptr<RepeatedProductOperation> make_cpu_packed_product(CpuContext& context,
                                                                  const RepeatedProductShape& shape);
std::unique_ptr<ConvolutionOperation> make_cpu_convolution(CpuContext& context, const ConvolutionShape& shape, Use use);
std::unique_ptr<PoolingOperation> make_cpu_pooling(CpuContext& context, const PoolingShape& shape, Use use);
std::unique_ptr<ActivationOperation> make_cpu_activation(const CpuContext& context, const ActivationShape& shape);
std::unique_ptr<BatchNormalizationOperation> make_cpu_batch_normalization(const CpuContext& context,
                                                                          const BatchNormalizationShape& shape,
                                                                          Use use);
// `draws` must outlive the operation. They are read at each forward pass.
std::unique_ptr<DropoutOperation> make_cpu_dropout(const CpuContext& context, const DropoutShape& shape,
                                                   const RandomKey& draws);

}  // namespace holdfast::compute
