#pragma once

// Uninitialised memory for floats, aligned to a cache line. It only grows, and growing loses the content.

#include <cstddef>
#include <memory>
#include <new>

namespace holdfast::compute {

class AlignedFloats {
 public:
  static constexpr std::size_t kAlignmentBytes = 64;

  void grow_to(std::size_t floats) {
    if (floats <= size_) return;
    // The old block is freed first: both together may not fit where the new one alone does.
    data_.reset();
    size_ = 0;
    data_.reset(static_cast<float*>(::operator new (floats * sizeof(float), std::align_val_t{kAlignmentBytes})));
    size_ = floats;
  }

  float* data() const { return data_.get(); }

 private:
  struct Release {
    void operator()(float* data) const { ::operator delete (data, std::align_val_t{kAlignmentBytes}); }
  };

  std::unique_ptr<float, Release> data_;
  std::size_t size_ = 0;
};

}  // namespace holdfast::compute
