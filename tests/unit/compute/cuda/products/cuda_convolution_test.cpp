// Convolutions on cuDNN, if that has an engine.

#include "compute/cuda/products/cuda_convolution.h"

#include <gtest/gtest.h>

#include "compute/cuda/kernels/cuda_operations.h"
#include "emulation/host_cublas.h"
#include "emulation/host_cudnn.h"
#include "unit/compute/cuda/products/support/convolution_numbers.h"

namespace holdfast::compute {
namespace {

const ConvolutionShape kShape = {2, 7, 6, 3, 4, 3, 2, 1, 1, Padding::same, true};

class ConvolutionsOnCudnn : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    host_cublas::library() = {};
    host_cudnn::library() = {};
  }
  void TearDown() override { EXPECT_FALSE(host_cudnn::library().was_misled); }

  void expect_the_hosts_numbers(const ConvolutionShape& shape) {
    const ConvolutionNumbers numbers = random_numbers_for(shape);
    const auto operation =
        make_cuda_convolution(context_, GetParam(), shape, {.training = true, .input_gradient = true});
    // The library's result in bf16 has 8 bits, and before the bias is added it may be larger than the output.
    const float rounding = GetParam() == Precision::bf16 ? 0x1p-7F : 0;
    expect_near(results_on_host(shape, numbers, GetParam()), results_of(*operation, numbers), rounding, shape);
  }

  CudaContext context_{0};
};

TEST_P(ConvolutionsOnCudnn, GiveTheHostsNumbers) {
  for (const ConvolutionShape& shape : small_convolutions()) {
    host_cudnn::library().executions.clear();
    expect_the_hosts_numbers(shape);
    EXPECT_EQ(host_cudnn::library().executions.size(), 3U);
  }
}

TEST_P(ConvolutionsOnCudnn, TakeGroupsDilationAndVolumes) {
  for (const ConvolutionShape& shape : special_convolutions()) {
    host_cudnn::library().executions.clear();
    expect_the_hosts_numbers(shape);
    EXPECT_EQ(host_cudnn::library().executions.size(), 3U);
  }
}

// Without an engine the factors are f32 in each precision.
TEST_P(ConvolutionsOnCudnn, SumElementByElementWithoutAnEngineForGroupsDilationAndVolumes) {
  host_cudnn::library().engines = {};
  for (const ConvolutionShape& shape : special_convolutions()) {
    const ConvolutionNumbers numbers = random_numbers_for(shape);

    const auto operation =
        make_cuda_convolution(context_, GetParam(), shape, {.training = true, .input_gradient = true});

    expect_near(results_on_host(shape, numbers, Precision::f32), results_of(*operation, numbers), 0, shape);
  }
  EXPECT_TRUE(host_cudnn::library().executions.empty());
}

TEST_P(ConvolutionsOnCudnn, TakeTheFirstEngineThatMayRunAndCan) {
  host_cudnn::library().engines = {
      {.index = 1, .numerical_notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}},
      {.index = 2, .behavior_notes = {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}},
      {.index = 3, .plan = CUDNN_STATUS_NOT_SUPPORTED},
      {.index = 4, .plan = CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED},
      {.index = 5, .plan = CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER},
      {.index = 6, .workspace_bytes = std::int64_t{1} << 40},
      {.index = 7},
      {.index = 8},
  };

  expect_the_hosts_numbers(kShape);

  EXPECT_EQ(host_cudnn::library().executions, (std::vector<std::int64_t>{7, 7, 7}));
}

TEST_P(ConvolutionsOnCudnn, TakeTheGeneralEngineOfTheFallbackLast) {
  host_cudnn::library().engines = {};
  host_cudnn::library().fallback = {{.index = 0}, {.index = 9, .plan = CUDNN_STATUS_NOT_SUPPORTED}, {.index = 3}};

  expect_the_hosts_numbers(kShape);

  EXPECT_EQ(host_cudnn::library().executions, (std::vector<std::int64_t>{3, 3, 3}));

  host_cudnn::library().fallback.pop_back();
  host_cudnn::library().executions.clear();
  expect_the_hosts_numbers(kShape);

  EXPECT_EQ(host_cudnn::library().executions, (std::vector<std::int64_t>{0, 0, 0}));
}

TEST_P(ConvolutionsOnCudnn, UseColumnsWithoutAnEngine) {
  host_cudnn::library().engines = {};

  expect_the_hosts_numbers(kShape);

  EXPECT_TRUE(host_cudnn::library().executions.empty());
}

TEST_P(ConvolutionsOnCudnn, DoNotTakeMissingMemoryForAMissingEngine) {
  host_cudnn::library().engines = {{.index = 1, .plan = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED},
                                   {.index = 2}};

  EXPECT_THROW(make_cuda_convolution(context_, GetParam(), kShape, {.training = true, .input_gradient = true}), Error);
}

INSTANTIATE_TEST_SUITE_P(Precisions, ConvolutionsOnCudnn,
                         testing::Values(Precision::f32, Precision::tf32, Precision::bf16),
                         [](const auto& instance) { return std::string(name(instance.param)); });

}  // namespace
}  // namespace holdfast::compute
