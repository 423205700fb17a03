#pragma once

// The part of cuBLASLt that products of matrices need, in the host's memory. It follows the descriptions of arrays,
// which it reads by columns, exactly. It checks the alignment of arrays, and overwrites the library's part of the
// workspace.

#include <cublasLt.h>

#include <cstddef>

namespace holdfast::host_cublas {

struct Library {
  bool refuses_bias = false;
  int refused_algorithms = 0;          // so many of the heuristic's first algorithms fail when they run
  std::size_t workspace_bytes = 1000;  // that each algorithm needs, and overwrites
  bool was_misled = false;             // an array lacked the alignment that was declared
  cudaDataType_t factor_type = CUDA_R_32F;
  cublasComputeType_t compute_type = CUBLAS_COMPUTE_32F;
};

// There is one library in the process.
Library& library();

}  // namespace holdfast::host_cublas
