#pragma once

// Large blocks of memory in pages of 2 MiB, where the system gives such pages on request. Each page needs an entry of
// the processor's table of addresses: loops over large arrays, products of matrices and samples in random order look
// there all the time.

#include <cstddef>
#include <memory>

namespace holdfast {

// Blocks of so many bytes are worth it; they should begin at a multiple of kHugePageBytes.
inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
inline constexpr std::size_t kLargeBlockBytes = 4 * kHugePageBytes;

// Asks for huge pages where [memory, memory + bytes) is large. To be called before the memory is used. It changes
// nothing but speed, so a system that has none is not an error.
void ask_for_huge_pages(void* memory, std::size_t bytes);

// Cache lines, and whole vectors of every instruction set.
inline constexpr std::size_t kArrayAlignmentBytes = 64;

// Gives memory of allocate_floats() back.
struct FloatsRelease {
  std::size_t alignment_bytes = kArrayAlignmentBytes;
  void operator()(float* memory) const;
};

// Memory for `floats` numbers, uninitialised and aligned to kArrayAlignmentBytes. Large blocks begin at a multiple of
// kHugePageBytes and ask for huge pages. Throws std::bad_alloc.
std::unique_ptr<float[], FloatsRelease> allocate_floats(std::size_t floats);

}  // namespace holdfast
