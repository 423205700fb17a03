#pragma once

// Copies of a few KiB from a device to the host, made by a kernel instead of the copy engine. The engine makes one copy
// after another, whatever their streams, so the few bytes at the end of each step would wait until a whole snapshot has
// arrived. See docs/decisions/device-copies.md.

#include <cuda_runtime_api.h>

#include <cstddef>

namespace holdfast::compute {

// The largest copy that is made this way. A kernel's writes to the host's memory do not use the whole link.
inline constexpr std::size_t kMostSmallBytes = std::size_t{16} << 10;

// Queues the copy in `stream`, which belongs to the calling thread's device, and does not wait. The host sees the bytes
// once an event that was recorded after it has passed. `to` must come from cudaHostAlloc() or cudaMallocHost(), because
// devices use the same addresses for such memory. Memory of cudaHostRegister() may have other addresses there.
void copy_small_to_host(const void* from, void* to, std::size_t bytes, cudaStream_t stream);

}  // namespace holdfast::compute
