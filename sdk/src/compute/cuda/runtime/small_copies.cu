#include <cstdint>

#include "compute/cuda/runtime/cuda_launch.cuh"
#include "compute/cuda/runtime/small_copies.h"
#include "holdfast/base/error.h"

namespace holdfast::compute {
namespace {

constexpr unsigned kThreads = 256;

// Each thread copies one word, so that the writes of neighbours cross the link together.
template <class Word>
__global__ void copy_to_host_kernel(const Word* from, Word* to, std::size_t words) {
  const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index < words) to[index] = from[index];
}

template <class Word>
void launch_for_words(const void* from, void* to, std::size_t bytes, cudaStream_t stream) {
  const std::size_t words = bytes / sizeof(Word);
  launch(copy_to_host_kernel<Word>, block_count(static_cast<std::int64_t>(words), kThreads), kThreads, stream,
         static_cast<const Word*>(from), static_cast<Word*>(to), words);
}

// Arrays begin at any float, and their bytes may be of any number: then each byte is copied by itself.
bool is_in_words(const void* from, const void* to, std::size_t bytes) {
  const auto remainder = reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to) | bytes;
  return remainder % sizeof(std::uint32_t) == 0;
}

}  // namespace

void copy_small_to_host(const void* from, void* to, std::size_t bytes, cudaStream_t stream) {
  // For more bytes the copy engine is faster, and a wait for it is worth it.
  HOLDFAST_ASSERT(bytes <= kMostSmallBytes);
  if (is_in_words(from, to, bytes)) {
    launch_for_words<std::uint32_t>(from, to, bytes, stream);
  } else {
    launch_for_words<unsigned char>(from, to, bytes, stream);
  }
  check_launch("copy_small_to_host", {{"bytes", static_cast<std::int64_t>(bytes)}});
}

}  // namespace holdfast::compute
