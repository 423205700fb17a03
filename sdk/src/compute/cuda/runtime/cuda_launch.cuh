#pragma once

// The one place where kernels are started. Tests on machines without a device replace this header.

#include "compute/cuda/runtime/cuda_launch.h"

namespace holdfast::compute {

// Queues the kernel in `stream`. check_launch() says whether that failed.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
            const Arguments&... arguments) {
  kernel<<<blocks, threads, 0, stream>>>(arguments...);
}

}  // namespace holdfast::compute
