#pragma once

// Every call of the CUDA runtime, of cuBLASLt and of cuDNN goes through one of these, so that its failure becomes an
// Error that names it.

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn_graph.h>

#include <string>

#include "holdfast/base/error.h"

namespace holdfast::compute {

// Whether the failure is one after which the device refuses everything that this process asks of it (a trap, an illegal
// address, uncorrectable memory, a lost device): nothing but a new process helps.
bool ends_use_of_device(cudaError_t status);

// Throws Error unless `status` is cudaSuccess: out_of_memory; unsupported for a call that can never work; unavailable
// for what a new process would meet again, a missing driver for one; device_failed for all else, and for what ends this
// process's use of the device. `call` names the function, and shapes and device where that helps. The runtime's own
// record of the failure is cleared, so that no later check takes it for its own.
void check_cuda(cudaError_t status, const std::string& call);

// The same, with the libraries' own names for what went wrong.
void check_cublas(cublasStatus_t status, const std::string& call);
void check_cudnn(cudnnStatus_t status, const std::string& call);

}  // namespace holdfast::compute
