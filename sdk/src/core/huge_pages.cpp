#include "core/huge_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace holdfast {

void ask_for_huge_pages(void* memory, std::size_t bytes) {
  if (bytes < kLargeBlockBytes) return;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (address + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  const std::uintptr_t end = (address + bytes) / kHugePageBytes * kHugePageBytes;
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace holdfast
