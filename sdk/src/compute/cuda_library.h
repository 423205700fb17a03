#pragma once

// The CUDA back end, a shared library that is loaded when it is asked for: one program starts on machines without CUDA,
// too, and says there what is missing.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compute/backend.h"
#include "holdfast/base/log.h"

namespace holdfast {
class Communicator;
struct DeviceCommunicatorShape;
}  // namespace holdfast

namespace holdfast::compute {

struct CudaDevice {
  std::string name;  // "NVIDIA H200"
  int major = 0;     // compute capability
  int minor = 0;
  std::size_t memory_bytes = 0;
};

// What the shared library hands out through its one symbol. All may throw Error.
class CudaLibrary {
 public:
  // Changes with this class, Backend, MemorySpace, DeviceKernels and Communicator: library and program are of one
  // build.
  static constexpr const char* kInterface = "holdfast cuda interface 3";

  virtual ~CudaLibrary() = default;

  virtual std::vector<CudaDevice> devices() = 0;
  virtual std::unique_ptr<Backend> make_backend(int device, Precision precision) = 0;
  // See make_device_communicator(); for two ranks and more.
  virtual std::unique_ptr<Communicator> make_communicator(std::unique_ptr<Communicator> host, MemorySpace& memory,
                                                          const DeviceCommunicatorShape& shape) = 0;
};

// Loads it at the first call: from HOLDFAST_CUDA_LIBRARY where that is set, else beside the program or this library, or
// where the system's loader finds libholdfast_cuda.so. Throws Error{unavailable} naming what is missing. Any thread.
CudaLibrary& cuda_library();

extern "C" {
// The library has a log of its own, whose lines this takes to the program's.
using CudaLibraryLog = void (*)(LogLevel level, std::string_view line);
// The symbol: null when `interface` is not the library's own.
using MakeCudaLibrary = CudaLibrary* (*)(const char* interface, CudaLibraryLog log);
constexpr const char* kMakeCudaLibrary = "holdfast_cuda_library";
}

}  // namespace holdfast::compute
