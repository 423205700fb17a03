#pragma once

// How products of f32 matrices are computed: the one place that knows, for cuBLASLt and for cuDNN. Sums are f32 always.

#include <cublasLt.h>
#include <cudnn_graph.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "holdfast/compute/precision.h"

namespace holdfast::compute {

inline cublasComputeType_t compute_type(Precision precision) {
  return precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// In which the libraries are given factors, and cuDNN gives results, too: it has no engine for bf16 that gives f32
// without compiling one at run time (asked of 9.19 for an H200, 2026-11).
inline cudaDataType_t factor_type(Precision precision) {
  return precision == Precision::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}
inline cudnnDataType_t image_type(Precision precision) {
  return precision == Precision::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

// Sums that are cut into parts are added in the order of the parts when the parts are stored and added by a step of
// their own. "In place" promises that one part is added after the other, but not in which order.
constexpr std::uint32_t kOrderedReductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

inline bool is_ordered(std::uint32_t reduction_scheme) {
  return reduction_scheme == CUBLASLT_REDUCTION_SCHEME_NONE ||
         reduction_scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

// Whether an engine of cuDNN that has these notes gives the same bits each time, at the precision asked for.
inline bool may_run(std::span<const cudnnBackendNumericalNote_t> notes, Precision precision) {
  return std::none_of(notes.begin(), notes.end(), [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      // To f16, of whatever range the inputs are.
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        return true;
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        return precision == Precision::f32;
      default:
        return false;
    }
  });
}

}  // namespace holdfast::compute
