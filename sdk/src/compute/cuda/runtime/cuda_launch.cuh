#pragma once

// How kernels are started, in one place: tests on machines without a device put another one there.

#include "compute/cuda/runtime/cuda_launch.h"

namespace holdfast::compute {

// Queued in `stream`; check_launch() tells whether that went well.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
            const Arguments&... arguments) {
  kernel<<<blocks, threads, 0, stream>>>(arguments...);
}

}  // namespace holdfast::compute
