// How failures of the CUDA runtime become error codes, which decide what the watchdog does.

#include "compute/cuda/runtime/cuda_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

namespace holdfast::compute {
namespace {

std::optional<Error> thrown_by(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

TEST(CudaError, IsNotThrownOnSuccess) {
  EXPECT_FALSE(thrown_by([] { check_cuda(cudaSuccess, "call"); }));
  EXPECT_FALSE(thrown_by([] { check_cublas(CUBLAS_STATUS_SUCCESS, "call"); }));
  EXPECT_FALSE(thrown_by([] { check_cudnn(CUDNN_STATUS_SUCCESS, "call"); }));
}

TEST(CudaError, NamesTheCallAndWhatWentWrong) {
  const auto error = thrown_by([] { check_cuda(cudaErrorInvalidValue, "cudaMalloc of 12 bytes"); });

  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::unsupported);
  EXPECT_THAT(error->what(), testing::StartsWith("cudaMalloc of 12 bytes failed: cudaErrorInvalidValue"));
}

TEST(CudaError, KnowsWhatEndsTheUseOfTheDevice) {
  for (const cudaError_t sticky :
       {cudaErrorIllegalAddress, cudaErrorAssert, cudaErrorLaunchFailure, cudaErrorECCUncorrectable,
        cudaErrorMisalignedAddress, cudaErrorIllegalInstruction, cudaErrorLaunchTimeout}) {
    EXPECT_TRUE(ends_use_of_device(sticky)) << cudaGetErrorName(sticky);
    const auto error = thrown_by([&] { check_cuda(sticky, "call"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::device_failed);
    EXPECT_THAT(error->what(), testing::HasSubstr("this process, which must be replaced"));
  }
  for (const cudaError_t passing : {cudaErrorMemoryAllocation, cudaErrorInvalidValue, cudaErrorNotReady}) {
    EXPECT_FALSE(ends_use_of_device(passing)) << cudaGetErrorName(passing);
  }
}

// The watchdog starts no new process for what is unavailable.
TEST(CudaError, KnowsWhatANewProcessWouldMeetAgain) {
  for (const cudaError_t lasting : {cudaErrorInsufficientDriver, cudaErrorNoDevice, cudaErrorNoKernelImageForDevice}) {
    const auto error = thrown_by([&] { check_cuda(lasting, "call"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::unavailable) << cudaGetErrorName(lasting);
  }
  for (const cudaError_t passing : {cudaErrorDevicesUnavailable, cudaErrorInitializationError, cudaErrorSystemNotReady,
                                    cudaErrorInvalidResourceHandle, cudaErrorTimeout}) {
    const auto error = thrown_by([&] { check_cuda(passing, "call"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::device_failed) << cudaGetErrorName(passing);
  }
}

TEST(CudaError, DistinguishesMissingMemory) {
  const auto of_cuda = thrown_by([] { check_cuda(cudaErrorMemoryAllocation, "call"); });
  const auto of_cublas = thrown_by([] { check_cublas(CUBLAS_STATUS_ALLOC_FAILED, "call"); });
  const auto of_cudnn = thrown_by([] { check_cudnn(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, "call"); });

  for (const auto& error : {of_cuda, of_cublas, of_cudnn}) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::out_of_memory);
  }
}

TEST(CudaError, KnowsWhatCanNeverWork) {
  const auto of_cublas = thrown_by([] { check_cublas(CUBLAS_STATUS_NOT_SUPPORTED, "a product"); });
  const auto of_cudnn = thrown_by([] { check_cudnn(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "a convolution"); });

  ASSERT_TRUE(of_cublas && of_cudnn);
  EXPECT_EQ(of_cublas->code(), ErrorCode::unsupported);
  EXPECT_EQ(of_cudnn->code(), ErrorCode::unsupported);
  EXPECT_THAT(of_cudnn->what(), testing::StartsWith("a convolution failed: CUDNN_STATUS_NOT_SUPPORTED_LAYOUT"));
}

}  // namespace
}  // namespace holdfast::compute
