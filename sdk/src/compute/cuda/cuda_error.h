#pragma once

// Every call of the CUDA runtime goes through check_cuda(), so that its failure becomes an Error that names it.

#include <cuda_runtime_api.h>

#include <string>

#include "holdfast/base/error.h"

namespace holdfast::compute {

// Throws Error unless `status` is cudaSuccess: out_of_memory, or unavailable for what ends this process's use of the
// device (nothing but a new process helps then) and for a missing driver. `call` names the function, and shapes and
// device where that helps.
void check_cuda(cudaError_t status, const std::string& call);

}  // namespace holdfast::compute
