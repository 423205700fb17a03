// LibTorch takes a stream of somebody else's as its current one, on the thread that says so; its backward passes use
// the stream of their forward passes. So all of LibTorch's work has the order of Holdfast's, and needs no events. The
// memory that LibTorch allocates is used on this stream alone, so it may be given back while kernels still run.
// docs/decisions/torch.md

#include "torch_device.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "compute/cublas_workspace.h"
#include "holdfast/base/error.h"
#include "torch_errors.h"

#ifdef HOLDFAST_TORCH_CUDA
#include <c10/core/StreamGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace holdfast::torch {
namespace {

#ifdef HOLDFAST_TORCH_CUDA

constexpr bool kHasCuda = true;

class CudaTorchDevice final : public TorchDevice {
 public:
  CudaTorchDevice(at::Device device, void* stream)
      : stream_(c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(stream), device.index()).unwrap()) {}

  at::Device place() const override { return stream_.device(); }
  // As void, so that callers need no header of CUDA.
  std::shared_ptr<void> enter() const override { return std::make_shared<c10::StreamGuard>(stream_); }

 private:
  const c10::Stream stream_;
};

std::unique_ptr<TorchDevice> make_cuda_torch_device(const std::string& name, compute::Backend& backend) {
  return with_errors_of_torch("the device", [&]() -> std::unique_ptr<TorchDevice> {
    if (!at::hasCUDA()) {
      throw Error(ErrorCode::unavailable,
                  fmt::format("LibTorch finds no CUDA, and this run asks for {}: its libtorch_cuda is not loaded, or "
                              "needs another driver; see `holdfast doctor`",
                              name));
    }
    const at::Device place(name);
    // Makes LibTorch's own preparations for CUDA, before a stream is asked for.
    static_cast<void>(at::empty({1}, at::TensorOptions().dtype(at::kFloat).device(place)));
    void* stream = nullptr;
    backend.queue_on_stream([&](void* of_device) { stream = of_device; });
    return std::make_unique<CudaTorchDevice>(place, stream);
  });
}

constexpr MakeTorchDevice kMaker = make_cuda_torch_device;

#else

constexpr bool kHasCuda = false;
constexpr MakeTorchDevice kMaker = nullptr;

#endif

// A variable that is not set reads as an empty text, which is not a workspace.
std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

MakeTorchDevice& torch_device_maker() {
  static MakeTorchDevice maker = kMaker;
  return maker;
}

void require_torch_device(const Workers& asked) {
  const auto refuse = [&](const std::string& sentence) {
    throw Error(ErrorCode::unsupported,
                fmt::format("this run asks to train a module of LibTorch on {}, {}", asked.device, sentence));
  };
  const bool is_cpu = asked.device == "cpu";
  if (!is_cpu && torch_device_maker() == nullptr) {
    refuse(
        "and Holdfast::torch was built without CUDA: Holdfast or its LibTorch has no part for it; build both with CUDA "
        "(docs/torch.md), or name no devices in SuperviseOptions to train on the CPU");
  }
  if (asked.precision == Precision::bf16) {
    refuse(
        fmt::format("with products in bf16, which Holdfast does not choose for LibTorch; give "
                    "SuperviseOptions::precision f32{}, and convert in forward() what is to be bf16",
                    is_cpu ? "" : " or tf32"));
  }
  if (is_cpu) return;
  const std::string_view workspace = variable(compute::kCublasWorkspaceVariable);
  // A build without CUDA comes here with the device of a test, which has no cuBLAS.
  if (kHasCuda && workspace != compute::kCublasWorkspace && workspace != ":16:8") {
    refuse(
        fmt::format("where {} is \"{}\"; without {} or :16:8 in the environment from the start of the program, "
                    "cuBLAS may give other bits from run to run",
                    compute::kCublasWorkspaceVariable, workspace, compute::kCublasWorkspace));
  }
}

// LibTorch has no tensor of constant data. Callers write only to memory that they may change.
at::Tensor tensor_at(const void* data, at::IntArrayRef sizes, at::ScalarType type, at::Device place) {
  return at::for_blob(const_cast<void*>(data), sizes)
      .options(at::TensorOptions().dtype(type).device(place))
      .target_device(place)
      .make_tensor();
}

}  // namespace holdfast::torch
