#pragma once

// Dropout on a CUDA device, with the mask of the host bit for bit. The mask is drawn again in the backward pass: that
// costs less than to store and load it.

#include <cuda_runtime_api.h>

#include <memory>

#include "compute/backend.h"
#include "holdfast/core/memory_space.h"

namespace holdfast::compute {

// The draws of the passes that follow, in device memory: a captured graph of kernels reads them there, and can be
// replayed with others.
class CudaDraws {
 public:
  // `stream` is that in whose order `memory`, which must outlive this, does things.
  CudaDraws(MemorySpace& memory, cudaStream_t stream);

  // Queued, and not waited for. Not while a graph is captured, which would always set the same.
  void set(const Draws& draws);

  const Draws* device() const { return reinterpret_cast<const Draws*>(memory_.get()); }

 private:
  const cudaStream_t stream_;
  const std::shared_ptr<float[]> memory_;
};

// `draws` must outlive the operation, and must be the same in a backward pass as in its forward pass. Queued in
// `stream`.
std::unique_ptr<DropoutOperation> make_cuda_dropout(const DropoutShape& shape, const CudaDraws& draws,
                                                    cudaStream_t stream);

}  // namespace holdfast::compute
