#include <filesystem>

#include "gpu/support/gpu_test.h"

namespace holdfast {

std::unique_ptr<compute::Backend> backend_under_test(Precision precision) {
  if (!std::filesystem::exists("/dev/nvidiactl")) return nullptr;
  return compute::make_cuda_backend("cuda:0", precision);
}

}  // namespace holdfast
