#include "compute/cuda/runtime/cuda_launch.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <string>

#include "compute/cuda/runtime/cuda_error.h"

namespace holdfast::compute {

void check_launch(const char* kernel, std::initializer_list<LaunchSize> sizes) {
  // A launch returns nothing. Its error is only in the runtime's last error.
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  std::string call = fmt::format("launching the kernel {}", kernel);
  for (const LaunchSize& size : sizes) call += fmt::format(", {} {}", size.name, size.value);
  check_cuda(status, call);
}

unsigned block_count(std::int64_t count, std::int64_t per_block) {
  HOLDFAST_ASSERT(count >= 0 && per_block > 0);
  // At least one: a launch of no blocks is an error.
  const std::int64_t blocks = std::max<std::int64_t>((count + per_block - 1) / per_block, 1);
  HOLDFAST_ASSERT(blocks <= std::numeric_limits<std::int32_t>::max());
  return static_cast<unsigned>(blocks);
}

}  // namespace holdfast::compute
