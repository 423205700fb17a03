#pragma once

// Uninitialised memory for floats, aligned to a cache line. It only grows, and growing loses the content.

#include <cstddef>
#include <memory>

#include "core/huge_pages.h"

namespace holdfast::compute {

class AlignedFloats {
 public:
  static constexpr std::size_t kAlignmentBytes = kArrayAlignmentBytes;

  void grow_to(std::size_t floats) {
    if (floats <= size_) return;
    // The old block is freed first: both together may not fit where the new one alone does.
    data_.reset();
    size_ = 0;
    data_ = allocate_floats(floats);
    size_ = floats;
  }

  float* data() const { return data_.get(); }

 private:
  std::unique_ptr<float[], FloatsRelease> data_;
  std::size_t size_ = 0;
};

}  // namespace holdfast::compute
