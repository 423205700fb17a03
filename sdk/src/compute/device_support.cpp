#include "holdfast/compute/device_support.h"

#include "compute/backend.h"
#include "compute/cuda_library.h"
#include "holdfast/base/error.h"

namespace holdfast {

// The first call loads the library, which takes time. Later calls use the loaded one.
CudaSupport look_for_cuda() {
  CudaSupport support;
  try {
    for (const compute::CudaDevice& device : compute::cuda_library().devices()) support.devices.push_back(device.name);
  } catch (const Error& error) {
    // A machine without CUDA is not an error here: the caller asks whether there are devices.
    support.problem = error.what();
  }
  return support;
}

std::string describe_cpu_arithmetic() {
  return compute::make_cpu_backend(1)->description();
}

}  // namespace holdfast
