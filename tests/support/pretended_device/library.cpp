// A library that replaces libholdfast_cuda.so (HOLDFAST_CUDA_LIBRARY) and has four pretended devices. With it, training
// on devices is tested on machines without any.

#include <cstring>

#include "compute/cuda_library.h"
#include "pretended_backend.h"
#include "pretended_communicator.h"

namespace holdfast {
namespace {

class PretendedLibrary final : public compute::CudaLibrary {
 public:
  std::vector<compute::CudaDevice> devices() override {
    return std::vector<compute::CudaDevice>(4,
                                            {.name = "pretended", .major = 9, .minor = 0, .memory_bytes = 1U << 30U});
  }
  std::unique_ptr<compute::Backend> make_backend(int device, Precision precision) override {
    if (!memory_) memory_ = std::make_unique<PretendedMemory>(device);
    return make_pretended_backend(*memory_, precision);
  }
  std::unique_ptr<Communicator> make_communicator(std::unique_ptr<Communicator> host, MemorySpace&,
                                                  const DeviceCommunicatorShape& shape) override {
    return make_pretended_communicator(std::move(host), *memory_, shape);
  }
  PretendedMemory& memory() { return *memory_; }

 private:
  std::unique_ptr<PretendedMemory> memory_;  // a process computes on one device
};

PretendedLibrary& pretended_library() {
  static PretendedLibrary library;
  return library;
}

}  // namespace
}  // namespace holdfast

extern "C" __attribute__((visibility("default"))) holdfast::compute::CudaLibrary* holdfast_cuda_library(
    const char* interface, holdfast::compute::CudaLibraryLog log) {
  using holdfast::compute::CudaLibrary;
  if (std::strcmp(interface, CudaLibrary::kInterface) != 0) return nullptr;
  holdfast::set_log_sink(log);
  return &holdfast::pretended_library();
}

extern "C" __attribute__((visibility("default"))) void pretended_warning(const char* line) {
  holdfast::log(holdfast::LogLevel::warning, line);
}

extern "C" __attribute__((visibility("default"))) int pretended_repeats() {
  return holdfast::PretendedMemory::repeats();
}

// Between these calls the process may access the device's memory, as another library that computes on the device would.
extern "C" __attribute__((visibility("default"))) void* pretended_open() {
  return new holdfast::PretendedMemory::Access(holdfast::pretended_library().memory());
}

extern "C" __attribute__((visibility("default"))) void pretended_close(void* opened) {
  delete static_cast<holdfast::PretendedMemory::Access*>(opened);
}
