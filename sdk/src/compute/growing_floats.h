#pragma once

// Memory of a memory space that only ever grows, and loses its content when it does.

#include <memory>

#include "holdfast/core/memory_space.h"

namespace holdfast::compute {

class GrowingFloats {
 public:
  // Which outlives this object.
  explicit GrowingFloats(MemorySpace& space) : space_(&space) {}

  void grow_to(std::size_t floats) {
    if (floats <= size_) return;
    // Freed first: the two blocks together may not fit where the larger one alone does.
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
