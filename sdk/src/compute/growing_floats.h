#pragma once

// Memory for floats in a memory space. It only grows, and growing loses the content.

#include <memory>

#include "holdfast/core/memory_space.h"

namespace holdfast::compute {

class GrowingFloats {
 public:
  // `space` must outlive this object.
  explicit GrowingFloats(MemorySpace& space) : space_(&space) {}

  void grow_to(std::size_t floats) {
    if (floats <= size_) return;
    // The old block is freed first: both together may not fit where the new one alone does.
    floats_.reset();
    size_ = 0;
    floats_ = space_->allocate(floats);
    size_ = floats;
  }

  float* data() const { return floats_.get(); }

 private:
  MemorySpace* space_;
  std::shared_ptr<float[]> floats_;
  std::size_t size_ = 0;
};

}  // namespace holdfast::compute
