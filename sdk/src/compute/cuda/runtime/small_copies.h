#pragma once

// Copies of a few KiB from a device to the host that its copy engine has no part in. The engine does one copy behind
// the other, whatever their streams: the few bytes that each step ends with would wait for a whole state on its way.

#include <cuda_runtime_api.h>

#include <cstddef>

namespace holdfast::compute {

// Of what is worth it: a kernel's writes to the host's memory do not fill the link.
inline constexpr std::size_t kMostSmallBytes = std::size_t{16} << 10;

// Queued in `stream`, which is of the calling thread's device, and not waited for: once an event behind it has passed,
// the host sees the bytes. `to` is of cudaHostAlloc() or cudaMallocHost(), whose memory a device knows by the same
// addresses; what cudaHostRegister() was given may have others there.
void copy_small_to_host(const void* from, void* to, std::size_t bytes, cudaStream_t stream);

}  // namespace holdfast::compute
