#pragma once

// What a memory space does with arrays on its device. All is queued in `stream`, and nothing is waited for.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "holdfast/base/digest.h"

namespace holdfast::compute {

// sum[i] += summand[i]
void add_arrays(const float* summand, float* sum, std::size_t floats, cudaStream_t stream);

// *flag = 1, in device memory, where one of the values is not finite; it is never set to zero.
void flag_not_finite(const float* values, std::size_t floats, std::uint32_t* flag, cudaStream_t stream);

// digest() of the bytes of arrays, one behind the other, whose leaves the device computes:
//
//   digester.queue(arrays, stream);
//   ...                               what waits for the stream, for as long as the caller likes
//   const Digest digest = digester.result();
//
// Keeps some memory of host and device, 16 bytes for each leaf and 16 for each array.
class CudaDigester {
 public:
  CudaDigester();
  ~CudaDigester();
  CudaDigester(const CudaDigester&) = delete;
  CudaDigester& operator=(const CudaDigester&) = delete;

  // The memory grows here, where that is needed. Must not be called again before the stream has done what the last call
  // queued.
  void queue(std::span<const std::span<const float>> arrays, cudaStream_t stream);
  // Of the last queue(), once the stream has done it.
  Digest result() const;

 private:
  struct Memory;
  const std::unique_ptr<Memory> memory_;
};

}  // namespace holdfast::compute
