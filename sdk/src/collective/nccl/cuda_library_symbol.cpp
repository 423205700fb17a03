// The one symbol that libholdfast_cuda.so exports. It lies here because it also makes communicators, which compute/
// does not know.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>

#include "collective/device_communicator.h"
#include "collective/nccl/cuda_collective_stream.h"
#include "collective/nccl/nccl_communicator.h"
#include "compute/cuda/backend/cuda_backend.h"
#include "compute/cuda/runtime/cuda_error.h"
#include "compute/cuda/runtime/cuda_memory_space.h"
#include "compute/cuda_library.h"

namespace holdfast::compute {
namespace {

// The constructor queues work, so the stream lock is held.
std::shared_ptr<CudaCollectiveStream> make_stream(CudaMemorySpace& memory) {
  CudaContext& context = memory.context();
  const CudaContext::StreamLock lock = context.lock_stream();
  return std::make_shared<CudaCollectiveStream>(context.device_index(), context.stream(), context.lost_device());
}

// Only reachable by an application's own Trainable.
Error foreign_memory(const MemorySpace& memory) {
  return {
      ErrorCode::unsupported,
      fmt::format("several replicas cannot train a model with a memory() of its own ({}), because their gradients are "
                  "added in Holdfast's own GPU memory. Use Holdfast's layers, one replica, or host_memory(); "
                  "see docs/gpu.md",
                  memory.device())};
}

class LoadedLibrary final : public CudaLibrary {
 public:
  std::vector<CudaDevice> devices() override {
    int count = 0;
    check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    std::vector<CudaDevice> devices;
    for (int device = 0; device < count; ++device) {
      cudaDeviceProp properties{};
      check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
      devices.push_back({properties.name, properties.major, properties.minor, properties.totalGlobalMem});
    }
    return devices;
  }

  std::unique_ptr<Communicator> make_communicator(std::unique_ptr<Communicator> host, MemorySpace& memory,
                                                  const DeviceCommunicatorShape& shape) override {
    auto* const cuda_memory = dynamic_cast<CudaMemorySpace*>(&memory);
    if (cuda_memory == nullptr) throw foreign_memory(memory);
    return make_nccl_communicator(std::move(host), memory, make_stream(*cuda_memory), shape);
  }

  std::unique_ptr<Backend> make_backend(int device, Precision precision) override {
    return make_cuda_backend(device, precision);
  }
};

}  // namespace
}  // namespace holdfast::compute

extern "C" __attribute__((visibility("default"))) holdfast::compute::CudaLibrary* holdfast_cuda_library(
    const char* interface, holdfast::compute::CudaLibraryLog log) {
  using holdfast::compute::CudaLibrary;
  if (std::strcmp(interface, CudaLibrary::kInterface) != 0) return nullptr;
  holdfast::set_log_sink(log);
  static holdfast::compute::LoadedLibrary library;
  return &library;
}
