#pragma once

// What all operations of a CPU back end share: oneDNN's engine and stream, the number of threads, the precision of
// products, and scratch memory.
// The scratch memory is free between two operations, because a back end runs one operation at a time. It is allocated
// when an operation first runs, so that asking how much a model would need takes no memory.

#include <algorithm>
#include <cstddef>
#include <dnnl.hpp>

#include "compute/aligned_floats.h"
#include "holdfast/compute/precision.h"

namespace holdfast::compute {

class DeferredProducts;

class CpuContext {
 public:
  CpuContext(int threads, Precision precision)
      : threads_(threads), precision_(precision), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}
  CpuContext(const CpuContext&) = delete;
  CpuContext& operator=(const CpuContext&) = delete;

  int threads() const { return threads_; }
  bool is_bf16() const { return precision_ == Precision::bf16; }
  // In which the primitives of products read their factors. Results and biases are f32.
  dnnl::memory::data_type factor_type() const {
    return is_bf16() ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
  }
  const dnnl::engine& engine() const { return engine_; }
  dnnl::stream& stream() { return stream_; }

  // Called when an operation is made: from its second run on it allocates nothing.
  void reserve_scratch(std::size_t bytes) { scratch_bytes_ = std::max(scratch_bytes_, bytes); }
  std::byte* scratch() {
    scratch_.grow_to((scratch_bytes_ + sizeof(float) - 1) / sizeof(float));
    return reinterpret_cast<std::byte*>(scratch_.data());
  }
  // Counts memory that an operation keeps between its passes.
  void count_kept(std::size_t bytes) { kept_bytes_ += bytes; }
  // Who takes products of kernels' gradients in place of their result; null: nobody.
  void set_deferred(DeferredProducts* deferred) { deferred_ = deferred; }
  DeferredProducts* deferred() const { return deferred_; }
  // What all operations that were made need, together.
  std::size_t workspace_bytes() const { return scratch_bytes_ + kept_bytes_; }

 private:
  const int threads_;
  const Precision precision_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::size_t scratch_bytes_ = 0;
  std::size_t kept_bytes_ = 0;
  AlignedFloats scratch_;
  DeferredProducts* deferred_ = nullptr;
};

}  // namespace holdfast::compute
