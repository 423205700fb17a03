#pragma once

// Dropout on a CUDA device, with exactly the mask of the host. The backward pass draws the mask again, which costs less
// than storing and loading it.

#include <cuda_runtime_api.h>

#include <memory>

#include "compute/backend.h"
#include "holdfast/core/memory_space.h"

namespace holdfast::compute {

// The draws of the passes that follow, in device memory. A recorded graph reads them there, so it can be replayed with
// other draws.
class CudaDraws {
 public:
  // `stream` is the stream of `memory`, which must outlive this object.
  CudaDraws(MemorySpace& memory, cudaStream_t stream);

  // Queues the change and does not wait. Must not be recorded into a graph, which would always set the same draws.
  void set(const RandomKey& draws);

  const RandomKey* device() const { return reinterpret_cast<const RandomKey*>(memory_.get()); }

 private:
  const cudaStream_t stream_;
  const std::shared_ptr<float[]> memory_;
};

// `draws` must outlive the operation, and must not change between a forward pass and its backward pass. The operation
// queues in `stream`.
std::unique_ptr<DropoutOperation> make_cuda_dropout(const DropoutShape& shape, const CudaDraws& draws,
                                                    cudaStream_t stream);

}  // namespace holdfast::compute
