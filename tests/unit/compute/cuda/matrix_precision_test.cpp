#include "compute/cuda/kernels/matrix_precision.h"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast::compute {
namespace {

using Notes = std::vector<cudnnBackendNumericalNote_t>;

TEST(MatrixPrecision, TakesReductionsInOneOrderAlone) {
  EXPECT_TRUE(is_ordered(CUBLASLT_REDUCTION_SCHEME_NONE));
  EXPECT_TRUE(is_ordered(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  EXPECT_FALSE(is_ordered(CUBLASLT_REDUCTION_SCHEME_INPLACE));
  EXPECT_FALSE(is_ordered(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE));
  EXPECT_EQ(kOrderedReductions & CUBLASLT_REDUCTION_SCHEME_INPLACE, 0U);
}

TEST(MatrixPrecision, RefusesEnginesWhoseBitsDiffer) {
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16}) {
    EXPECT_TRUE(may_run({}, precision));
    EXPECT_TRUE(may_run(Notes{CUDNN_NUMERICAL_NOTE_WINOGRAD}, precision));
    EXPECT_FALSE(may_run(Notes{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, precision));
    EXPECT_FALSE(may_run(Notes{CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, precision));
  }
}

TEST(MatrixPrecision, TakesTensorCoresWhereFactorsMayBeRounded) {
  EXPECT_FALSE(may_run(Notes{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, Precision::f32));
  EXPECT_TRUE(may_run(Notes{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, Precision::tf32));
  EXPECT_TRUE(may_run(Notes{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, Precision::bf16));
  EXPECT_EQ(compute_type(Precision::f32), CUBLAS_COMPUTE_32F);
  EXPECT_EQ(compute_type(Precision::tf32), CUBLAS_COMPUTE_32F_FAST_TF32);
}

TEST(MatrixPrecision, AddsInF32WhateverTheFactorsAre) {
  EXPECT_EQ(compute_type(Precision::bf16), CUBLAS_COMPUTE_32F);
  EXPECT_EQ(factor_type(Precision::bf16), CUDA_R_16BF);
  EXPECT_EQ(image_type(Precision::bf16), CUDNN_DATA_BFLOAT16);
  EXPECT_FALSE(may_run(Notes{CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, Precision::bf16));
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16}) {
    EXPECT_FALSE(may_run(Notes{CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, precision)) << "rounds to f16";
  }
}

}  // namespace
}  // namespace holdfast::compute
