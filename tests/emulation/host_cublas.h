#pragma once

// cuBLASLt in the host's memory, as far as products of matrices ask for it: what it is told about arrays, by columns as
// it has them, is followed to the letter. What an array may not be relied on for (its alignment, the library's own part
// of the workspace) is checked or spoilt.

#include <cublasLt.h>

#include <cstddef>

namespace holdfast::host_cublas {

struct Library {
  bool refuses_bias = false;
  int refused_algorithms = 0;          // so many of the first that the heuristic names fail when they run
  std::size_t workspace_bytes = 1000;  // that each algorithm asks for, and fills
  bool was_misled = false;             // by an alignment that an array does not have
  cudaDataType_t factor_type = CUDA_R_32F;
  cublasComputeType_t compute_type = CUBLAS_COMPUTE_32F;
};

// The only one.
Library& library();

}  // namespace holdfast::host_cublas
