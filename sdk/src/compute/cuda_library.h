#pragma once

// Loads the CUDA back end, which is a shared library of its own. So one program also starts on machines without CUDA,
// and says there what is missing. Tests put another library in its place. See docs/decisions/devices.md.

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

// What the shared library offers through its one symbol. All functions may throw Error.
class CudaLibrary {
 public:
  // Must change together with this class, Backend, MemorySpace, DeviceKernels and Communicator, because library and
  // program share these classes.
  static constexpr const char* kInterface = "holdfast cuda interface 3";

  virtual ~CudaLibrary() = default;

  virtual std::vector<CudaDevice> devices() = 0;
  virtual std::unique_ptr<Backend> make_backend(int device, Precision precision) = 0;
  // See make_device_communicator(). For two or more ranks.
  virtual std::unique_ptr<Communicator> make_communicator(std::unique_ptr<Communicator> host, MemorySpace& memory,
                                                          const DeviceCommunicatorShape& shape) = 0;
};

// Loads the library at the first call: from HOLDFAST_CUDA_LIBRARY if that is set, else from the folder of the program
// or of this library, else where the system's loader finds libholdfast_cuda.so. Throws Error{unavailable}, which says
// what is missing. Any thread.
CudaLibrary& cuda_library();

extern "C" {
// The library has its own copy of the log; this passes its lines to the program's log.
using CudaLibraryLog = void (*)(LogLevel level, std::string_view line);
// The type of the symbol. It returns null if `interface` is not that of the library.
using MakeCudaLibrary = CudaLibrary* (*)(const char* interface, CudaLibraryLog log);
constexpr const char* kMakeCudaLibrary = "holdfast_cuda_library";
}

}  // namespace holdfast::compute
