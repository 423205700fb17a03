#pragma once

// The digest of arrays on a CUDA device, whose leaves the device computes:
//
//   digester.queue(arrays, stream);
//   ...                               whatever waits for the stream, for as long as the caller likes
//   const Digest digest = digester.result();

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "compute/arithmetic/piece_words.h"
#include "compute/arithmetic/xxh3.h"
#include "compute/cuda/runtime/given_up.h"
#include "holdfast/base/digest.h"

namespace holdfast::compute {

// Keeps memory of host and device: 24 bytes for each array and 16 for each leaf of the largest digest so far, and what
// it outgrew, until the end: giving that back would wait for all that the device has to do.
class CudaDigester {
 public:
  // `given_up` is the device's.
  explicit CudaDigester(GivenUp given_up = {}) : given_up_(std::move(given_up)) {}
  ~CudaDigester();
  CudaDigester(const CudaDigester&) = delete;
  CudaDigester& operator=(const CudaDigester&) = delete;

  // Begins digest() of the bytes of all arrays, one behind the other. Not before the stream has done what the last call
  // queued. Throws Error.
  void queue(std::span<const std::span<const float>> arrays, cudaStream_t stream);
  // Of the last queue(), once the stream has done it.
  Digest result() const;

 private:
  struct Memory {
    Piece* host_pieces = nullptr;  // pinned
    Piece* pieces = nullptr;       // on the device
    std::size_t piece_capacity = 0;
    Hash128* host_leaves = nullptr;  // pinned, and written by the kernel
    std::size_t leaf_capacity = 0;
  };

  void reserve(std::size_t pieces, std::size_t leaves);

  const GivenUp given_up_;
  std::vector<Memory> memories_;  // the last is in use
  std::uint64_t bytes_ = 0;       // of the last queue()
};

}  // namespace holdfast::compute
