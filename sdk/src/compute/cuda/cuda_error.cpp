#include "compute/cuda/cuda_error.h"

namespace holdfast::compute {

void check_cuda(cudaError_t status, const std::string& call) {
  if (status == cudaSuccess) return;
  const std::string sentence = call + " failed: " + cudaGetErrorName(status) + ", " + cudaGetErrorString(status);
  const ErrorCode code = status == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::unavailable;
  throw Error(code, sentence);
}

}  // namespace holdfast::compute
