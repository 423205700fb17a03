#pragma once

// How products of f32 matrices are computed by cuBLASLt and cuDNN at each precision. Sums are always f32.

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

// The type of the factors that the libraries get, and of cuDNN's results too: for bf16 factors cuDNN has no engine with
// f32 results that it does not compile at run time (9.19, asked for an H200, 2026-11).
inline cudaDataType_t factor_type(Precision precision) {
  return precision == Precision::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}
inline cudnnDataType_t image_type(Precision precision) {
  return precision == Precision::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

// Sums may be cut into parts. If the parts are stored and then added by a separate step, their order is fixed. "In
// place" promises only that parts are added one after another, not in which order.
constexpr std::uint32_t kOrderedReductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

inline bool is_ordered(std::uint32_t reduction_scheme) {
  return reduction_scheme == CUBLASLT_REDUCTION_SCHEME_NONE ||
         reduction_scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

// Whether a cuDNN engine with these notes gives the same bits each time, at the given precision.
inline bool may_run(std::span<const cudnnBackendNumericalNote_t> notes, Precision precision) {
  return std::none_of(notes.begin(), notes.end(), [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      // This note means that inputs are rounded to f16, whatever their range.
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
