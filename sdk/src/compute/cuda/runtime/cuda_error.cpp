// Which failure means what. The watchdog treats a device that failed differently from a setting that no new process can
// repair, so each status must map to the right code. See docs/decisions/failing-devices.md.

#include "compute/cuda/runtime/cuda_error.h"

#include <fmt/format.h>
#include <array>

namespace holdfast::compute {

bool ends_use_of_device(cudaError_t status) {
  // After one of these, CUDA fails each further call of the process with the same status.
  switch (status) {
    case cudaErrorCudartUnloading:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorMpsClientTerminated:
    case cudaErrorMpsRpcFailure:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

static ErrorCode code_of(cudaError_t status) {
  // A new process may find the device healthy, so the watchdog is told of the device and not of a setting.
  if (ends_use_of_device(status)) return ErrorCode::device_failed;
  switch (status) {
    case cudaErrorMemoryAllocation:
      return ErrorCode::out_of_memory;
    // The device cannot do what was asked, and could not in a new process.
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidDevicePointer:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorNotSupported:
      return ErrorCode::unsupported;
    // A new process would meet these again.
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorStubLibrary:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorNotPermitted:
      return ErrorCode::unavailable;
    // These may pass: a device may be held by a process that is about to end, or a service may be about to start.
    default:
      return ErrorCode::device_failed;
  }
}

static std::string advice(cudaError_t status) {
  if (ends_use_of_device(status))
    return "; the device refuses all further work of this process, which must be replaced";
  switch (status) {
    case cudaErrorMemoryAllocation:
      return "; use smaller batches, or end other programs on the device";
    case cudaErrorInsufficientDriver:
      return "; install NVIDIA's driver or a newer one, and see `holdfast doctor`";
    case cudaErrorNoDevice:
      return "; check that the driver is loaded and that CUDA_VISIBLE_DEVICES does not hide the device; see `holdfast "
             "doctor`";
    case cudaErrorNoKernelImageForDevice:
      return "; Holdfast is built for devices of compute capability 8.0 and later";
    default:
      return "";
  }
}

void check_cuda(cudaError_t status, const std::string& call) {
  if (status == cudaSuccess) return;
  // The next check of a launch would find this error again.
  static_cast<void>(cudaGetLastError());
  throw Error(code_of(status), fmt::format("{} failed: {}, {}{}", call, cudaGetErrorName(status),
                                           cudaGetErrorString(status), advice(status)));
}

void check_cublas(cublasStatus_t status, const std::string& call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string sentence = fmt::format("{} failed: {}", call, cublasLtGetStatusName(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw Error(ErrorCode::out_of_memory, sentence);
  // A new process would ask for the same product and get the same answer.
  const bool can_never_work = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
                              status == CUBLAS_STATUS_ARCH_MISMATCH;
  throw Error(can_never_work ? ErrorCode::unsupported : ErrorCode::device_failed, sentence);
}

static ErrorCode code_of(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    return ErrorCode::out_of_memory;
  }
  // The thousands of a status are its category. Single statuses are added with each version.
  const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
  const bool can_never_work = category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM;
  return can_never_work ? ErrorCode::unsupported : ErrorCode::device_failed;
}

void check_cudnn(cudnnStatus_t status, const std::string& call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  // cuDNN keeps an explanation for each thread.
  std::array<char, 512> message{};
  cudnnGetLastErrorString(message.data(), message.size());
  const std::string explanation = message.front() == '\0' ? "" : fmt::format(" ({})", message.data());
  throw Error(code_of(status), fmt::format("{} failed: {}{}", call, cudnnGetErrorString(status), explanation));
}

}  // namespace holdfast::compute
