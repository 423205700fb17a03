#include "core/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace holdfast {

void ask_for_huge_pages(void* memory, std::size_t bytes) {
  if (bytes < kLargeBlockBytes) return;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (address + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  const std::uintptr_t end = (address + bytes) / kHugePageBytes * kHugePageBytes;
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

void FloatsRelease::operator()(float* memory) const {
  ::operator delete (memory, std::align_val_t{alignment_bytes});
}

std::unique_ptr<float[], FloatsRelease> allocate_floats(std::size_t floats) {
  const std::size_t bytes = std::max<std::size_t>(floats, 1) * sizeof(float);
  const std::size_t alignment_bytes = bytes < kLargeBlockBytes ? kArrayAlignmentBytes : kHugePageBytes;
  auto* const memory = static_cast<float*>(::operator new (bytes, std::align_val_t{alignment_bytes}));
  ask_for_huge_pages(memory, bytes);
  return {memory, FloatsRelease{alignment_bytes}};
}

}  // namespace holdfast
