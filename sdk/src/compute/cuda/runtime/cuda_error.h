#pragma once

// Checks for every call of the CUDA runtime, of cuBLASLt and of cuDNN. A failure becomes an Error that names the call.
// Its code says whether a new process would help.

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn_graph.h>

#include <string>

#include "holdfast/base/error.h"

namespace holdfast::compute {

// Whether the device refuses all further work of this process after this failure, so that only a new process helps: a
// trap, an illegal address, uncorrectable memory, a lost device.
bool ends_use_of_device(cudaError_t status);

// Throws Error unless `status` is cudaSuccess. The code is out_of_memory; unsupported for a call that can never work;
// unavailable for what a new process would meet again, such as a missing driver; device_failed for all else, and always
// if ends_use_of_device(). `call` names the function, and shapes and device if that helps. Clears the runtime's last
// error, so that no later check takes it for its own.
void check_cuda(cudaError_t status, const std::string& call);

// The same for the libraries, with their own names of the failure.
void check_cublas(cublasStatus_t status, const std::string& call);
void check_cudnn(cudnnStatus_t status, const std::string& call);

}  // namespace holdfast::compute
