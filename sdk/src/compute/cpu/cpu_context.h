#pragma once

// What all operations of a CPU back end share: oneDNN's engine and stream, the number of threads, and scratch memory.
// The scratch memory is free between two operations, because a back end runs one operation at a time.

#include <cstddef>
#include <dnnl.hpp>

#include "compute/aligned_floats.h"

namespace holdfast::compute {

class CpuContext {
 public:
  explicit CpuContext(int threads) : threads_(threads), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}
  CpuContext(const CpuContext&) = delete;
  CpuContext& operator=(const CpuContext&) = delete;

  int threads() const { return threads_; }
  const dnnl::engine& engine() const { return engine_; }
  dnnl::stream& stream() { return stream_; }

  // Called when an operation is made, so that running it allocates nothing.
  void reserve_scratch(std::size_t bytes) { scratch_.grow_to((bytes + sizeof(float) - 1) / sizeof(float)); }
  std::byte* scratch() const { return reinterpret_cast<std::byte*>(scratch_.data()); }

 private:
  const int threads_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  AlignedFloats scratch_;
};

}  // namespace holdfast::compute
