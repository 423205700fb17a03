#include "freed_memory.h"

#include <malloc.h>

#include <cstdlib>
#include <string_view>

namespace holdfast::torch {
namespace {

// The largest one that glibc accepts.
constexpr int kMmapThresholdBytes = 32 << 20;

bool has_limits_in_environment() {
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") != nullptr || std::getenv("MALLOC_MMAP_THRESHOLD_") != nullptr) return true;
  const char* const tunables = std::getenv("GLIBC_TUNABLES");
  return tunables != nullptr && std::string_view(tunables).find("glibc.malloc.") != std::string_view::npos;
}

}  // namespace

// LibTorch has no pool of memory for the CPU: each array is freed to malloc, and glibc returns the top of the heap to
// the system whenever more than its limit is free there. How much that is in a step depends on what lies next to it. A
// ResNet of 6 ms a step touched 340 to 640 new pages in each one, at 2 us a page (docs/measurements.md).
void keep_freed_memory() {
  if (has_limits_in_environment()) return;
  ::mallopt(M_TRIM_THRESHOLD, -1);
  ::mallopt(M_MMAP_THRESHOLD, kMmapThresholdBytes);
}

}  // namespace holdfast::torch
