#pragma once

// Replaces the file of the same name: kernels run on the host, see emulation/grid.h.

#include "compute/cuda/runtime/cuda_launch.h"
#include "emulation/cuda_language.h"
#include "emulation/grid.h"

namespace holdfast::compute {

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t,
            const Arguments&... arguments) {
  if (!emulation::can_launch()) return;
  emulation::run_grid(blocks, threads, [&] { kernel(arguments...); });
}

}  // namespace holdfast::compute
