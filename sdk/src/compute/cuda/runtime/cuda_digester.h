#pragma once

// The digest of arrays on a CUDA device, with the bits of base/digest.h. The device computes the leaves, the host the
// tree above them:
//
//   digester.queue(arrays, stream);
//   ...                               wait for the stream in any way
//   const Digest digest = digester.result();

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "compute/arithmetic/piece_words.h"
#include "compute/arithmetic/xxh3.h"
#include "compute/cuda/runtime/lost_device.h"
#include "holdfast/base/digest.h"

namespace holdfast::compute {

// Keeps memory of host and device: 24 bytes for each array and 16 for each leaf of the largest digest so far. Memory
// that became too small is kept until the end, because freeing it would wait for all work of the device.
class CudaDigester {
 public:
  // `lost_device` is the flag of the device.
  explicit CudaDigester(LostDeviceFlag lost_device = {}) : lost_device_(std::move(lost_device)) {}
  ~CudaDigester();
  CudaDigester(const CudaDigester&) = delete;
  CudaDigester& operator=(const CudaDigester&) = delete;

  // Queues the digest of the bytes of all arrays, one after another. The stream must have done what the last call
  // queued. Throws Error.
  void queue(std::span<const std::span<const float>> arrays, cudaStream_t stream);
  // The digest of the last queue(), after the stream has done that work.
  Digest result() const;

 private:
  struct Memory {
    Piece* host_pieces = nullptr;  // pinned
    Piece* pieces = nullptr;       // on the device
    std::size_t piece_capacity = 0;
    Hash128* host_leaves = nullptr;  // pinned; the kernel writes them
    std::size_t leaf_capacity = 0;
  };

  void reserve(std::size_t pieces, std::size_t leaves);

  const LostDeviceFlag lost_device_;
  std::vector<Memory> memories_;  // the last one is in use
  std::uint64_t bytes_ = 0;       // of the last queue()
};

}  // namespace holdfast::compute
